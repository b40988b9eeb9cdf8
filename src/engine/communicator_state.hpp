// CommunicatorState: what the engine knows of a communicator — its members, its error, its records, what peers said.
//
// Any thread. Poisoning is final: the first error wins.
#pragma once

#include <rondo/error.hpp>

#include "base/system.hpp"
#include "engine/exchanges.hpp"
#include "engine/flight_recorder.hpp"
#include "engine/pair_counts.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rondo::engine {

// Where a peer said it is, in answer to an inquiry.
struct PeerStatus {
  std::uint64_t last_called = 0;
  bool running = false;  // its operation last_called has not ended
  std::string text;      // its progress
  std::string exchange;  // the split, allocate or close it is in; empty: none
  base::Nanoseconds heard = 0;
};

class CommunicatorState {
 public:
  CommunicatorState(std::uint64_t its_context, std::string its_name, std::vector<int> its_members, int its_rank)
      : context(its_context), name(std::move(its_name)), members(std::move(its_members)), rank(its_rank) {}

  const std::uint64_t context;
  const std::string name;
  const std::vector<int> members;  // world ranks by rank
  const int rank;
  FlightRecorder recorder;
  Exchanges exchanges;
  PairCounts pair_counts;
  std::atomic<bool> error_seen{false};  // the user has been given the poisoning error
  std::atomic<int> in_flight{0};        // operations submitted and not ended
  std::atomic<bool> has_wires{false};   // some pair of members shares no memory; set before the first operation

  bool poisoned() const { return poisoned_.load(std::memory_order_acquire); }  // pairs with poison()
  // True if this error is the first.
  bool poison(const Error& error) {
    if (!claim(error)) return false;
    publish();
    return true;
  }
  // poison() in two steps: after a claim no later error can win, but nothing ends before publish().
  bool claim(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (error_) return false;
    error_ = std::make_shared<Error>(error);
    return true;
  }
  void publish() { poisoned_.store(true, std::memory_order_release); }  // pairs with poisoned()
  Error error() const {
    const std::lock_guard lock(mutex_);
    return error_ ? *error_ : Error(ErrorCode::internal, "no error");
  }
  int rank_of_world(int world_rank) const {
    for (std::size_t r = 0; r < members.size(); ++r)
      if (members[r] == world_rank) return static_cast<int>(r);
    return -1;
  }
  void heard_from(int peer, PeerStatus status) {
    const std::lock_guard lock(mutex_);
    statuses_[peer] = std::move(status);
  }
  std::map<int, PeerStatus> statuses() const {
    const std::lock_guard lock(mutex_);
    return statuses_;
  }
  // The collective this rank is in, so that inquiries can be answered with its progress.
  void set_progress(std::string text) {
    const std::lock_guard lock(mutex_);
    progress_ = std::move(text);
  }
  std::string progress() const {
    const std::lock_guard lock(mutex_);
    return progress_;
  }
  // A thread goes on only after collective `sequence` (it waits for it until it ends or fails).
  void begin_wait(std::uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    waits_.insert(sequence);
  }
  void end_wait(std::uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    waits_.erase(waits_.find(sequence));
  }
  // The latest collective that a thread so waits for; 0: none does.
  std::uint64_t latest_wait() const {
    const std::lock_guard lock(mutex_);
    return waits_.empty() ? 0 : *waits_.rbegin();
  }

 private:
  std::atomic<bool> poisoned_{false};
  mutable std::mutex mutex_;
  std::shared_ptr<Error> error_;
  std::map<int, PeerStatus> statuses_;
  std::string progress_;
  std::multiset<std::uint64_t> waits_;
};

}  // namespace rondo::engine
