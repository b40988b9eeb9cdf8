// Doorbell: one word per rank on which that rank sleeps and which peers ring. Every wait of the library ends here.
//
// The word is 1 while somebody may be asleep. A waiter: arm(), look once more, sleep(). A ringer: make its news visible
// (a release store), then ring(). A wake-up is never lost because the waiter's "store 1, then look" and the ringer's
// "store news, then load the word" are each ordered by a full barrier: the ringer's is explicit when `ringer_fences`,
// else the waiter pays for both sides with System::heavy_barrier() — sleepers are rare when ranks have a core each, and
// the ringer's fence would cost a cache-line transfer on every message.
//
// The word may lie in memory shared between processes.
#pragma once

#include "base/system.hpp"

#include <atomic>
#include <cstdint>

namespace rondo::base {

struct alignas(64) DoorbellWord {
  std::atomic<std::uint32_t> armed{0};
  // Set once before peers see the word: the owner can't run heavy_barrier(), or ranks outnumber cores and sleep often.
  std::atomic<std::uint32_t> ringer_fences{0};
};

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif

// Orders everything before against everything after, both ways. Under TSan, which does not model fences, a sequentially
// consistent read-modify-write of the word has the same effect.
inline void full_barrier(DoorbellWord& word) {
#if defined(__SANITIZE_THREAD__)
  word.armed.fetch_add(0, std::memory_order_seq_cst);
#else
  static_cast<void>(word);
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Called after the news has been stored with release order.
inline void ring(DoorbellWord& word, System& system) {
  if (word.ringer_fences.load(std::memory_order_relaxed) != 0) full_barrier(word);
  if (word.armed.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (word.armed.exchange(0, std::memory_order_acq_rel) != 0) system.futex_wake(word.armed);
  }
}

// The waiter's side. After arm() the waiter must look at everything it waits for, then either disarm() or sleep().
inline void arm(DoorbellWord& word, System& system) {
  word.armed.store(1, std::memory_order_seq_cst);
  if (word.ringer_fences.load(std::memory_order_relaxed) != 0 || !system.heavy_barrier()) full_barrier(word);
}
inline void disarm(DoorbellWord&) {}  // leaving it armed costs one needless wake and is safe with several waiters
inline void sleep(DoorbellWord& word, System& system, Nanoseconds limit) { system.futex_wait(word.armed, 1, limit); }

}  // namespace rondo::base
