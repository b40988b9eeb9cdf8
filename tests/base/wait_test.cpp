#include "base/wait.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>

namespace rondo::base {
namespace {

constexpr Nanoseconds second = 1'000'000'000;
constexpr BackOff sleepy{0, 0, 20'000'000};
const auto no_hook = [] {};

TEST(Wait, ReturnsReadyWithoutSleepingWhenTheConditionHolds) {
  DoorbellWord bell;
  int looks = 0;
  const auto ready = [&] { return ++looks == 1; };
  EXPECT_EQ(wait_until(System::real(), bell, BackOff{}, never, ready, no_hook), WaitResult::ready);
  EXPECT_EQ(looks, 1);
}

TEST(Wait, EndsAtTheDeadline) {
  DoorbellWord bell;
  auto& system = System::real();
  const Nanoseconds deadline = system.now() + 5'000'000;
  const auto ready = [] { return false; };
  EXPECT_EQ(wait_until(system, bell, sleepy, deadline, ready, no_hook), WaitResult::deadline);
  EXPECT_GE(system.now(), deadline);
}

TEST(Wait, LooksOnceMoreWhenTheDeadlineHasPassedAlready) {
  DoorbellWord bell;
  EXPECT_EQ(wait_until(
                System::real(), bell, sleepy, 0, [] { return true; }, no_hook),
            WaitResult::ready);
}

TEST(Wait, PassesOnWhatTheConditionOrTheHookThrows) {
  DoorbellWord bell;
  const auto aborts = []() -> bool { throw std::runtime_error("abort"); };
  EXPECT_THROW(wait_until(System::real(), bell, sleepy, never, aborts, no_hook), std::runtime_error);
  const auto hook = [] { throw std::runtime_error("hook"); };
  const BackOff short_nap{0, 0, 1'000'000};
  EXPECT_THROW(wait_until(
                   System::real(), bell, short_nap, never, [] { return false; }, hook),
               std::runtime_error);
}

// The nap is as long as the deadline: only the ring can end the sleep in time.
TEST(Wait, ARingWakesASleeperInAnotherThread) {
  auto& system = System::real();
  for (const bool fences : {false, true}) {
    DoorbellWord there;
    DoorbellWord back;
    there.ringer_fences = back.ringer_fences = (fences || !system.heavy_barrier()) ? 1 : 0;
    std::atomic<int> ball{0};
    constexpr int rounds = 200;
    const BackOff long_nap{0, 0, 30 * second};
    const Nanoseconds deadline = system.now() + 30 * second;
    std::thread partner([&] {
      for (int i = 0; i < rounds; ++i) {
        const auto mine = [&] { return ball.load(std::memory_order_acquire) == 2 * i + 1; };
        if (wait_until(system, there, long_nap, deadline, mine, no_hook) != WaitResult::ready) return;
        ball.store(2 * i + 2, std::memory_order_release);
        ring(back, system);
      }
    });
    for (int i = 0; i < rounds; ++i) {
      ball.store(2 * i + 1, std::memory_order_release);
      ring(there, system);
      const auto mine = [&] { return ball.load(std::memory_order_acquire) == 2 * i + 2; };
      ASSERT_EQ(wait_until(system, back, long_nap, deadline, mine, no_hook), WaitResult::ready) << "round " << i;
    }
    partner.join();
  }
}

struct Shared {
  DoorbellWord bell;
  std::atomic<int> news{0};
};

TEST(Wait, ARingFromAnotherProcessWakesASleeper) {
  auto& system = System::real();
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) Shared;
  shared->bell.ringer_fences = system.heavy_barrier() ? 0 : 1;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Rings only once the parent has armed the word, so that the ring is needed.
    while (shared->bell.armed.load() == 0) system.yield();
    shared->news.store(1, std::memory_order_release);
    ring(shared->bell, system);
    _exit(0);
  }
  const BackOff long_nap{0, 0, 30 * second};
  const auto ready = [&] { return shared->news.load(std::memory_order_acquire) == 1; };
  EXPECT_EQ(wait_until(system, shared->bell, long_nap, system.now() + 30 * second, ready, no_hook), WaitResult::ready);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  shared->~Shared();
  munmap(memory, sizeof(Shared));
}

TEST(RealSystem, ThreadsBlockAllSignalsAndTheStarterKeepsItsMask) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::atomic<int> blocked{-1};
  std::string name;
  auto thread = System::real().start_thread("a-name-longer-than-15", [&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1 ? 1 : 0;
  });
  thread->join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(blocked, 1);
  EXPECT_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

TEST(RealSystem, AFutexWaitOnAnotherValueReturnsAtOnce) {
  std::atomic<std::uint32_t> word{7};
  System::real().futex_wait(word, 8, never);
  SUCCEED();
}

TEST(RealSystem, TimeDoesNotGoBack) {
  const Nanoseconds first = System::real().now();
  EXPECT_LE(first, System::real().now());
}

}  // namespace
}  // namespace rondo::base
