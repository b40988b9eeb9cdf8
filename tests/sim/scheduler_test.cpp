// The simulation's own rules: order, time, freezing, exceptions across switches, deadlocks.
#include "transports/sim/scheduler.hpp"
#include "base/wait.hpp"
#include "transports/sim/sim_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rondo::transport::sim {
namespace {

SchedulerOptions with_seed(std::uint64_t seed) {
  SchedulerOptions options;
  options.seed = seed;
  return options;
}

std::pair<std::string, std::uint64_t> order_of_three(std::uint64_t seed) {
  Scheduler scheduler(with_seed(seed));
  std::string order;
  for (const char letter : {'a', 'b', 'c'})
    scheduler.spawn(0, std::string(1, letter), [&, letter] {
      for (int i = 0; i < 5; ++i) {
        order += letter;
        scheduler.yield();
      }
    });
  scheduler.run();
  return {order, scheduler.trace_hash()};
}

TEST(SimScheduler, TheSameSeedGivesTheSameSchedule) {
  EXPECT_EQ(order_of_three(7), order_of_three(7));
  EXPECT_NE(order_of_three(7).first, order_of_three(8).first);
}

TEST(SimScheduler, TimeJumpsToTheNextTimerWhenNobodyIsReady) {
  Scheduler scheduler(with_seed(1));
  const Nanoseconds began = scheduler.now();
  std::vector<int> order;
  scheduler.spawn(0, "late", [&] {
    scheduler.sleep(3'000'000'000);
    order.push_back(2);
  });
  scheduler.spawn(0, "early", [&] {
    scheduler.sleep(1'000'000'000);
    order.push_back(1);
  });
  scheduler.run();
  EXPECT_THAT(order, testing::ElementsAre(1, 2));
  EXPECT_GE(scheduler.now() - began, 3'000'000'000);
  EXPECT_LT(scheduler.now() - began, 3'001'000'000);
}

TEST(SimScheduler, AWaitEndsByWakeOrByLimit) {
  SchedulerOptions options = with_seed(3);
  options.spurious_wake_one_in = 0;
  Scheduler scheduler(options);
  std::atomic<std::uint32_t> word{1};
  Nanoseconds woken = 0, limited = 0;
  const Nanoseconds began = scheduler.now();
  scheduler.spawn(0, "woken", [&] {
    scheduler.wait(word, 1, 1'000'000'000);
    woken = scheduler.now() - began;
    scheduler.wait(word, 1, 5'000'000);
    limited = scheduler.now() - began - woken;
  });
  scheduler.spawn(0, "waker", [&] {
    scheduler.sleep(1000);
    EXPECT_EQ(scheduler.wake(word), 1U);
  });
  scheduler.run();
  EXPECT_LT(woken, 10'000);
  EXPECT_GE(limited, 5'000'000);
}

TEST(SimScheduler, AWaitOnAnotherValueReturnsAtOnce) {
  Scheduler scheduler(with_seed(3));
  std::atomic<std::uint32_t> word{0};
  const Nanoseconds began = scheduler.now();
  scheduler.spawn(0, "waiter", [&] { scheduler.wait(word, 1, 1'000'000'000); });
  scheduler.run();
  EXPECT_LT(scheduler.now() - began, 10'000);
}

TEST(SimScheduler, ADeadlockNamesEveryFiberAndWhatItWaitsFor) {
  SchedulerOptions options = with_seed(1);
  options.spurious_wake_one_in = 0;
  Scheduler scheduler(options);
  std::atomic<std::uint32_t> word{1};
  const std::size_t sleeper = scheduler.spawn(2, "sleeper", [&] { scheduler.wait(word, 1, base::never); });
  scheduler.spawn(3, "joiner", [&] { scheduler.join(sleeper); });
  try {
    scheduler.run();
    FAIL() << "no deadlock was found";
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("deadlock"));
    EXPECT_THAT(error.what(), testing::HasSubstr("sleeper of rank 2 waits for a wake-up of the word"));
    EXPECT_THAT(error.what(), testing::HasSubstr("joiner of rank 3 waits for the end of sleeper"));
  }
}

TEST(SimScheduler, AnEndlessLoopIsFoundByTheTurnLimit) {
  SchedulerOptions options = with_seed(1);
  options.most_turns = 1000;
  Scheduler scheduler(options);
  scheduler.spawn(0, "spinner", [&] {
    for (;;) scheduler.yield();
  });
  EXPECT_THROW(scheduler.run(), SimulationError);
}

TEST(SimScheduler, AFrozenRankGetsNoTurnUntilItThaws) {
  Scheduler scheduler(with_seed(5));
  Nanoseconds last = 0;
  bool stop = false;
  const Nanoseconds began = scheduler.now();
  scheduler.spawn(1, "worker", [&] {
    while (!stop) {
      last = scheduler.now();
      scheduler.sleep(1000);
    }
  });
  Nanoseconds last_when_thawed = 0;
  scheduler.after(50'000, [&] { scheduler.freeze(1); });
  scheduler.after(90'000, [&] {
    last_when_thawed = last;
    stop = true;
    scheduler.thaw(1);
  });
  scheduler.run();
  EXPECT_LE(last_when_thawed - began, 51'000);
}

TEST(SimScheduler, EachFiberHasItsOwnExceptions) {
  Scheduler scheduler(with_seed(2));
  for (int f = 0; f < 4; ++f)
    scheduler.spawn(f, "thrower", [&, f] {
      for (int i = 0; i < 20; ++i) {
        try {
          throw std::runtime_error(std::to_string(f * 100 + i));
        } catch (const std::exception&) {
          EXPECT_EQ(std::uncaught_exceptions(), 0);
          scheduler.yield();  // others throw and catch meanwhile
          try {
            throw;
          } catch (const std::exception& error) {
            EXPECT_EQ(error.what(), std::to_string(f * 100 + i));
          }
        }
      }
    });
  scheduler.run();
}

TEST(SimScheduler, WhatABodyThrowsComesOutOfRun) {
  Scheduler scheduler(with_seed(2));
  scheduler.spawn(0, "thrower", [] { throw std::runtime_error("from the fiber"); });
  EXPECT_THROW(scheduler.run(), std::runtime_error);
}

TEST(SimSystem, AThreadStartedByAFiberIsJoined) {
  Scheduler scheduler(with_seed(9));
  SimSystem system(scheduler, 0);
  int steps = 0;
  scheduler.spawn(0, "parent", [&] {
    const auto child = system.start_thread("child", [&] {
      for (int i = 0; i < 10; ++i) {
        ++steps;
        system.yield();
      }
    });
    child->join();
    EXPECT_EQ(steps, 10);
  });
  scheduler.run();
}

TEST(SimPoller, AWakeBeforeTheWaitIsNotLost) {
  Scheduler scheduler(with_seed(9));
  SimSystem system(scheduler, 0);
  SimPoller poller(system);
  const Nanoseconds began = scheduler.now();
  scheduler.spawn(0, "service", [&] {
    poller.wake();
    poller.wait(1'000'000'000);
  });
  scheduler.run();
  EXPECT_LT(scheduler.now() - began, 1'000'000);
}

}  // namespace
}  // namespace rondo::transport::sim
