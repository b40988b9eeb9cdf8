// Poller: what a service thread sleeps on: descriptors, a wake-up from other threads, a time limit.
//
// RealPoller is epoll with an eventfd. The simulation has one without descriptors. add/remove/wake: any thread; wait:
// the one service thread.
#pragma once

#include "base/system.hpp"

#include <functional>
#include <memory>

namespace rondo::base {

class Poller {
 public:
  Poller() = default;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  virtual ~Poller() = default;
  // Calls `ready` from wait() while the descriptor is readable, or hung up (level-triggered); also while it is writable
  // if asked for. `ready` may add and remove descriptors, its own too.
  virtual void add(int fd, bool writable, std::function<void()> ready) = 0;
  virtual void set_writable(int fd, bool writable) = 0;
  // After remove() returns on the service thread, `ready` is not called any more.
  virtual void remove(int fd) = 0;
  virtual void wake() = 0;
  virtual void wait(Nanoseconds limit) = 0;

  static std::unique_ptr<Poller> make_real();
};

}  // namespace rondo::base
