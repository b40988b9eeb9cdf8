#include "base/fork_guard.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace rondo::base {
namespace {

// Linux's own limit (fs.nr_open) unless raised. Pages of this table exist only when touched.
constexpr std::size_t most_descriptors = std::size_t{1} << 20;
std::array<std::atomic<std::uint64_t>, most_descriptors / 64> owned{};
// Words of `owned` that were ever in use, so that a child need not look at all.
std::atomic<std::size_t> words_used{0};
void (*child_action)() = nullptr;

// Only async-signal-safe calls: the parent may have had threads. Relaxed: the child has one thread.
void close_all() {
  const std::size_t words = words_used.load(std::memory_order_relaxed);
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t bits = owned[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) ::close(static_cast<int>(word * 64) + std::countr_zero(bits));
  }
  if (child_action != nullptr) child_action();
}

}  // namespace

void own_descriptor(int fd) {
  const auto number = static_cast<std::size_t>(fd);
  if (fd < 0 || number >= most_descriptors) return;
  std::size_t used = words_used.load(std::memory_order_relaxed);
  while (used < number / 64 + 1 &&
         !words_used.compare_exchange_weak(used, number / 64 + 1, std::memory_order_relaxed)) {
  }
  owned[number / 64].fetch_or(std::uint64_t{1} << (number % 64), std::memory_order_relaxed);
}

bool forget_descriptor(int fd) {
  const auto number = static_cast<std::size_t>(fd);
  if (fd < 0) return false;
  if (number >= most_descriptors) return true;
  const std::uint64_t bit = std::uint64_t{1} << (number % 64);
  return (owned[number / 64].fetch_and(~bit, std::memory_order_relaxed) & bit) != 0;
}

void close_in_forked_children(void (*in_child)()) {
  static std::once_flag once;
  std::call_once(once, [in_child] {
    child_action = in_child;
    pthread_atfork(nullptr, nullptr, close_all);
  });
}

}  // namespace rondo::base
