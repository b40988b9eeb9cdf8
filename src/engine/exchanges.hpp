// Exchanges: the calls over the control tree (split, allocate, close) that this rank has made on a communicator, so
// that a peer that waits in a collective for it can be told where it is instead.
//
// Any thread.
#pragma once

#include "base/system.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rondo::engine {

struct Exchange {
  std::uint64_t number = 0;  // the communicator's n-th, from 1
  std::string call;          // "split"
  base::Nanoseconds began = 0;
};

class Exchanges {
 public:
  std::uint64_t begin(std::string call, base::Nanoseconds now) {
    const std::lock_guard lock(mutex_);
    open_.push_back({++begun_, std::move(call), now});
    return begun_;
  }
  void end(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [number](const Exchange& exchange) { return exchange.number == number; });
  }
  std::uint64_t begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  // The oldest that has not ended.
  std::optional<Exchange> current() const {
    const std::lock_guard lock(mutex_);
    return open_.empty() ? std::nullopt : std::optional(open_.front());
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t begun_ = 0;
  std::vector<Exchange> open_;  // several threads can be in one each
};

// One exchange of this thread, from construction to destruction.
class OpenExchange {
 public:
  OpenExchange(Exchanges& exchanges, std::string call, base::Nanoseconds now)
      : exchanges_(&exchanges), number_(exchanges.begin(std::move(call), now)) {}
  OpenExchange(const OpenExchange&) = delete;
  OpenExchange& operator=(const OpenExchange&) = delete;
  ~OpenExchange() { exchanges_->end(number_); }
  std::uint64_t number() const { return number_; }

 private:
  Exchanges* exchanges_;
  std::uint64_t number_;
};

}  // namespace rondo::engine
