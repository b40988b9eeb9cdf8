// PairCounts: how many elements this rank sent to and took from each peer in its last uneven collectives. Those counts
// are known to the pair alone, so no signature can carry them: the pair compares them when one of the two waits.
//
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace rondo::engine {

// What one rank says of itself and one peer.
struct PairCount {
  std::uint64_t sequence = 0;
  std::uint64_t sends = 0;     // elements to the peer
  std::uint64_t receives = 0;  // elements from it
};

class PairCounts {
 public:
  static constexpr std::size_t most = 32;  // collectives remembered, at 16 bytes a peer each

  // By rank; empty: nothing to anybody.
  void add(std::uint64_t sequence, std::vector<std::size_t> sends, std::vector<std::size_t> receives) {
    const std::lock_guard lock(mutex_);
    calls_.push_back({sequence, std::move(sends), std::move(receives)});
    if (calls_.size() > most) calls_.pop_front();
  }
  // With one peer; oldest first.
  std::vector<PairCount> with(int peer) const {
    const std::lock_guard lock(mutex_);
    std::vector<PairCount> found;
    for (const Entry& call : calls_) found.push_back({call.sequence, at(call.sends, peer), at(call.receives, peer)});
    return found;
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return calls_.empty();
  }

 private:
  struct Entry {
    std::uint64_t sequence;
    std::vector<std::size_t> sends;
    std::vector<std::size_t> receives;
  };
  static std::size_t at(const std::vector<std::size_t>& counts, int peer) {
    return counts.empty() ? 0 : counts[static_cast<std::size_t>(peer)];
  }

  mutable std::mutex mutex_;
  std::deque<Entry> calls_;
};

}  // namespace rondo::engine
