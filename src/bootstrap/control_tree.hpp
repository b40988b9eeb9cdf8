// ControlTree: the slow, reliable network among all ranks of a world: agreement, errors, heartbeats, goodbyes.
//
// Ranks form a k-ary tree (parent of r: (r - 1) / k); a frame for another rank is routed along it, a flood reaches all.
// It carries what must work when data paths do not: who failed, who called what, and the exchanges of joining and
// splitting.
//
// Threads: the engine's service thread calls progress(); the rest may be called from any thread. Handlers run on the
// service thread without locks held and must not block.
#pragma once

#include "base/doorbell.hpp"
#include "base/system.hpp"
#include "bootstrap/control_link.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rondo::bootstrap {

inline constexpr int control_tree_arity = 4;

struct ControlMessage {
  std::uint32_t type = 0;     // the sender's business; values >= 0x8000'0000 are the tree's own
  std::uint64_t context = 0;  // the communicator it concerns
  std::int32_t source = 0;    // world rank
  std::vector<std::byte> payload;
};

struct ControlHandlers {
  std::function<void(const ControlMessage&)> on_message;
  // Called once a rank on every surviving rank that can learn of it: `rank` closed its link without goodbye, or was
  // silent for the heartbeat. `why` is ready to print ("rank 3 (host, pid) closed its control connection").
  std::function<void(int rank, const std::string& why)> on_rank_failed;
};

class ControlTree {
 public:
  // `links`: this rank's neighbours by rank: exactly parent and children. heartbeat: a direct neighbour that is silent
  // for this long while this rank's own progress() calls were regular has failed (0: never). describe[r] is how errors
  // name r.
  ControlTree(base::System& system, int rank, int size, std::map<int, std::unique_ptr<ControlLink>> links,
              base::Nanoseconds heartbeat, std::vector<std::string> describe);
  ~ControlTree();
  ControlTree(const ControlTree&) = delete;
  ControlTree& operator=(const ControlTree&) = delete;

  // Before the first progress(). `bell` is rung when a blocking call below may go on; `wake` makes the service thread
  // call progress() soon.
  void start(ControlHandlers handlers, base::DoorbellWord& bell, std::function<void()> wake);

  int rank() const;
  int size() const;

  void send(int destination, std::uint32_t type, std::uint64_t context, std::span<const std::byte> payload);
  // To every other rank.
  void flood(std::uint32_t type, std::uint64_t context, std::span<const std::byte> payload);

  // Collective among `members` (world ranks, this one included, the same order everywhere): everybody's bytes, in
  // members' order. `sequence` tells calls of one context apart. Blocks; throws Error(deadline) naming the members
  // whose bytes have not arrived, or Error(rank_failed) when a member is known to have failed, or what `check` throws
  // (called often).
  std::vector<std::vector<std::byte>> all_gather(std::uint64_t context, std::uint64_t sequence,
                                                 std::span<const int> members, std::span<const std::byte> bytes,
                                                 base::Nanoseconds deadline, const std::function<void()>& check);

  // Announces that this rank leaves in good order: afterwards its closing link is no failure. leave() blocks until all
  // ranks of the world have said so (true) or the deadline passed or a rank failed (false).
  bool leave(base::Nanoseconds deadline);
  // Tells everybody why this rank ends without goodbye, then closes. Never blocks for more than the sends.
  void leave_with_error(const std::string& why);

  // Handles what has arrived, sends heartbeats, detects silence. Returns the time by which it wants to be called again.
  base::Nanoseconds progress();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rondo::bootstrap
