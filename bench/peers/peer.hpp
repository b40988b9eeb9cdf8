// What the measured libraries have in common: a rank that runs one collective many times on command.
//
// One process a rank. A rank takes its commands from the named pipe DIRECTORY/command.RANK, so that a job that is not
// being measured sleeps in read() and leaves the machine to the other one. Rank 0 answers each command with one line of
// JSON on the named pipe DIRECTORY/result. Both pipes are made by run.py. Commands:
//   total COLLECTIVE BYTES ITERATIONS WORKING_SET   {"us": mean time of one call}
//   each COLLECTIVE BYTES ITERATIONS WORKING_SET    {"median": us, "p99": us, "p99.9": us} of single calls
//   quit                                            (so does the end of the pipe)
// Times are the largest over the ranks. Data are fp32, out of place, and rotate through buffers of WORKING_SET bytes
// altogether; 0: always the same buffers. BYTES is the larger side, as in nccl-tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rondo::peers {

// `input` and `output` hold `count` floats, or `count` for each rank on the side that has them.
struct Call {
  std::string_view collective;
  const float* input;
  float* output;
  std::size_t count;
};

// A library. Methods are called by one thread, in the same order on all ranks.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  virtual double maximum(double value) = 0;
  // Whether the library has it; "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all".
  virtual bool supports(std::string_view collective) const = 0;
  // A blocking call; sums of floats, root 0. Broadcast is in place on `output`.
  virtual void run(const Call& call) = 0;
  // Memory for buffers, alive as long as this; collective.
  virtual float* allocate(std::size_t count) = 0;
};

// Serves commands until the end. Throws std::runtime_error for a malformed command and for a wrong result.
void serve(Peer& peer, const std::string& directory);

}  // namespace rondo::peers
