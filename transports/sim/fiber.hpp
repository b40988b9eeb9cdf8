// Fiber: a stack of its own and the switch between it and the scheduler's; what a simulated thread is made of.
//
// One OS thread runs all of them. A fiber must run to its end before it is destroyed, for nothing else unwinds its
// stack. Each fiber has its own exception state, so that a switch inside a catch block, or while unwinding, is
// harmless.
#pragma once

#include "transports/sim/fiber_stack.hpp"

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace rondo::transport::sim {

class Fiber {
 public:
  // `body` must not throw. Nothing runs before the first resume().
  Fiber(FiberStack stack, std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside: runs the fiber until it calls leave() or ends.
  void resume();
  // From inside: back to whoever called resume().
  void leave();
  bool ended() const { return ended_; }
  FiberStack take_stack() { return std::move(stack_); }

 private:
  static void enter(unsigned high, unsigned low);
  void run();
  void swap_exception_state();

  FiberStack stack_;
  std::function<void()> body_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  bool ended_ = false;
  struct {
    void* caught = nullptr;
    unsigned uncaught = 0;
  } exceptions_;  // of the side that does not run
  // What the sanitizers must know of a switch; unused without them.
  const void* outside_bottom_ = nullptr;
  std::size_t outside_bytes_ = 0;
  void* sanitizer_inside_ = nullptr;
  void* sanitizer_outside_ = nullptr;
};

}  // namespace rondo::transport::sim
