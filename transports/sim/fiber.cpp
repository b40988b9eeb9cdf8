#include "transports/sim/fiber.hpp"

#include <rondo/error.hpp>

#include <cxxabi.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace rondo::transport::sim {

Fiber::Fiber(FiberStack stack, std::function<void()> body) : stack_(std::move(stack)), body_(std::move(body)) {
  if (::getcontext(&inside_) != 0) {
    throw Error(ErrorCode::system, fmt::format("getcontext: {}", std::generic_category().message(errno)));
  }
  inside_.uc_stack.ss_sp = stack_.bottom();
  inside_.uc_stack.ss_size = FiberStack::bytes();
  inside_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  // makecontext passes ints, so the pointer travels in two halves.
  ::makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self & 0xFFFF'FFFFU));
#if defined(__SANITIZE_THREAD__)
  sanitizer_inside_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(sanitizer_inside_);
#endif
}

void Fiber::enter(unsigned high, unsigned low) {
  const std::uintptr_t self = std::uintptr_t{high} << 32 | low;
  reinterpret_cast<Fiber*>(self)->run();
}

void Fiber::run() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &outside_bottom_, &outside_bytes_);
#endif
  body_();
  body_ = nullptr;
  ended_ = true;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, outside_bottom_, outside_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(sanitizer_outside_, 0);
#endif
  ::setcontext(&outside_);
}

// The C++ run-time keeps the chain of caught exceptions and the count of uncaught ones in a thread-local object, whose
// layout the ABI fixes: a pointer and an unsigned (Itanium C++ ABI, Exception Handling, 2.2.2).
void Fiber::swap_exception_state() {
  void* const globals = abi::__cxa_get_globals();
  decltype(exceptions_) now;
  std::memcpy(static_cast<void*>(&now), globals, sizeof now);
  std::memcpy(globals, static_cast<const void*>(&exceptions_), sizeof now);
  exceptions_ = now;
}

void Fiber::resume() {
  swap_exception_state();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&sanitizer_outside_, stack_.bottom(), FiberStack::bytes());
#endif
#if defined(__SANITIZE_THREAD__)
  sanitizer_outside_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_inside_, 0);
#endif
  ::swapcontext(&outside_, &inside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(sanitizer_outside_, nullptr, nullptr);
#endif
  swap_exception_state();
}

void Fiber::leave() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&sanitizer_inside_, outside_bottom_, outside_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(sanitizer_outside_, 0);
#endif
  ::swapcontext(&inside_, &outside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(sanitizer_inside_, &outside_bottom_, &outside_bytes_);
#endif
}

}  // namespace rondo::transport::sim
