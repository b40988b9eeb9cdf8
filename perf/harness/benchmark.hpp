// What distinguishes one benchmark program from another: a small value that its main() hands to run_benchmark().
//
// Everything else (options, data, checking, timing, printing) is common. The extents say how large each side is; from
// them follow how a size in bytes becomes a count, and where the in-place form puts the smaller side:
//   input one,      output per_rank   the input is the rank's block of the output  (all_gather, gather)
//   input per_rank, output one        the output is the rank's block of the input  (reduce_scatter, scatter)
//   both alike                        input and output are the same buffer
#pragma once

#include <rondo/communicator.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace rondo::perf {

// One call as its issue() sees it; `count` is the count of the call, in elements of `type`.
struct Call {
  Communicator& communicator;
  const void* input;
  void* output;
  std::size_t count;
  DataType type;
  Reduction op;
  int root;
};

// Who this rank is in a call, for expected().
struct Shape {
  int rank = 0;
  int ranks = 1;
  int root = -1;
  std::size_t count = 0;
};

// `count` elements of the output, from element `output_start` on, must hold elements `source_start` ... of rank
// `source`'s input, or of the reduction of all inputs where `source` is `reduced`.
struct Segment {
  std::size_t output_start = 0;
  std::size_t count = 0;
  int source = 0;
  std::size_t source_start = 0;
  bool operator==(const Segment&) const = default;
};
inline constexpr int reduced = -1;

enum class Extent { one, per_rank };  // `count` elements, or `count` for each rank

enum class RootRole {
  none,
  source,       // input is read on the root only
  destination,  // output is written on the root only
};

struct Benchmark {
  std::string_view name;   // "all_reduce_perf"
  std::string_view title;  // one line for --help
  Extent input = Extent::one;
  Extent output = Extent::one;
  RootRole root = RootRole::none;
  bool reduces = false;
  bool in_place = true;
  // busbw = algbw x this.
  double (*bus_factor)(int ranks) = nullptr;
  // Makes one blocking call (or, inside a Group, adds it).
  void (*issue)(const Call& call) = nullptr;
  // What the output of this rank must hold, called only where the output is written. Blocks of one rank's output.
  std::vector<Segment> (*expected)(const Shape& shape) = nullptr;
};

// Sizes and places of one measurement, in elements.
struct Layout {
  std::size_t count = 0;            // as the call takes it
  std::size_t input_elements = 0;   // on every rank
  std::size_t output_elements = 0;  // on every rank
  std::size_t in_place_input = 0;   // where the input starts in the shared buffer
  std::size_t in_place_output = 0;  // where the output starts in the shared buffer
  std::size_t larger() const { return input_elements > output_elements ? input_elements : output_elements; }
};

// The layout whose larger side has at most `bytes`: the size is rounded down to whole blocks.
Layout layout_for(const Benchmark& benchmark, std::size_t bytes, DataType type, int rank, int ranks);

inline bool reads_input(const Benchmark& benchmark, int rank, int root) {
  return benchmark.root != RootRole::source || rank == root;
}
inline bool writes_output(const Benchmark& benchmark, int rank, int root) {
  return benchmark.root != RootRole::destination || rank == root;
}

// Block r of the output is the whole input of rank r.
std::vector<Segment> one_block_from_each_rank(const Shape& shape);

// Bus factors shared by several programs: what a link carries for each byte of the size, as nccl-tests defines it.
inline double bus_factor_one(int) { return 1.0; }
inline double bus_factor_all_but_one(int ranks) { return (ranks - 1.0) / ranks; }
inline double bus_factor_twice_all_but_one(int ranks) { return 2.0 * (ranks - 1.0) / ranks; }

// Runs the program. Returns its exit code: 0 right, 1 wrong values, 2 bad options, 3 an error of the library or system.
int run_benchmark(const Benchmark& benchmark, int argc, char** argv);

}  // namespace rondo::perf
