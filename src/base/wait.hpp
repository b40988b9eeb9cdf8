// The one wait primitive: spin, yield, then sleep on the rank's doorbell; with a deadline, an abort flag and a hook.
#pragma once

#include "base/doorbell.hpp"
#include "base/system.hpp"

#include <atomic>
#include <cstdint>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rondo::base {

inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

// How long to look before sleeping. With a core for each rank: look for some ten microseconds, for a peer answers
// within one; then look between yields, for the scheduler may have put two ranks on one core. When ranks outnumber
// cores: look a few times, give the core away a few times, then sleep (measured in docs/performance.md).
struct BackOff {
  std::uint32_t spins = 300;
  std::uint32_t yields = 200;
  Nanoseconds nap = 20'000'000;  // longest single sleep: deadlines and hooks are looked at this often
};

enum class WaitResult : std::uint8_t { ready, deadline };

// Calls ready() until it returns true or `deadline` (System::now time) passes. ready() may throw (an abort does).
// Between looks calls on_nap() about once per nap: the place for slow-path checks; it may throw too. on_arm() is called
// between arming the bell and the last look before each sleep: whatever must ring the bell (a wire) is told there.
template <class Ready, class OnNap, class OnArm>
WaitResult wait_until(System& system, DoorbellWord& bell, const BackOff& back_off, Nanoseconds deadline, Ready&& ready,
                      OnNap&& on_nap, OnArm&& on_arm) {
  const std::uint32_t spins = back_off.spins < system.spin_limit() ? back_off.spins : system.spin_limit();
  for (std::uint32_t i = 0; i < spins; ++i) {
    if (ready()) return WaitResult::ready;
    cpu_relax();
  }
  for (std::uint32_t i = 0; i < back_off.yields; ++i) {
    if (ready()) return WaitResult::ready;
    system.yield();
  }
  Nanoseconds next_hook = system.now() + back_off.nap;
  for (;;) {
    arm(bell, system);
    on_arm();
    if (ready()) return WaitResult::ready;
    const Nanoseconds now = system.now();
    if (now >= deadline) return WaitResult::deadline;
    if (now >= next_hook) {
      next_hook = now + back_off.nap;
      on_nap();
    }
    Nanoseconds limit = next_hook - now;
    if (deadline - now < limit) limit = deadline - now;
    if (limit < 1000) limit = 1000;
    sleep(bell, system, limit);
  }
}

template <class Ready, class OnNap>
WaitResult wait_until(System& system, DoorbellWord& bell, const BackOff& back_off, Nanoseconds deadline, Ready&& ready,
                      OnNap&& on_nap) {
  return wait_until(system, bell, back_off, deadline, ready, on_nap, [] {});
}

}  // namespace rondo::base
