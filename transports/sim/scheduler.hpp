// Scheduler: virtual time and the simulated threads of all ranks; one runs at a time, chosen by a seeded generator.
//
// The whole simulation lives on one OS thread: run() takes turns with the fibers. The same seed and the same program
// give the same schedule, step by step; trace_hash() is a digest of it. A fiber gives way only inside yield(), wait(),
// maybe_yield() and join(), so plain mutexes are safe as long as nobody holds one there.
//
// Time stands still while code runs; each turn costs a few tens of nanoseconds, and when nobody is ready time jumps to
// the next timer. Nobody ready and no timer is a deadlock: run() throws SimulationError naming each fiber and what it
// waits for.
#pragma once

#include "base/system.hpp"
#include "transports/sim/fiber.hpp"
#include "transports/sim/random.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace rondo::transport::sim {

using base::Nanoseconds;

// The simulation itself cannot go on: a deadlock, or more turns than allowed.
class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct SchedulerOptions {
  std::uint64_t seed = 1;
  std::uint64_t most_turns = 5'000'000;
  // A waiter wakes for no reason once in this many waits, and a wake-up gives way once in this many; 0: never.
  std::uint32_t spurious_wake_one_in = 16;
  std::uint32_t preempt_one_in = 4;
  std::shared_ptr<FiberStackPool> stacks;  // null: its own
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Starts a simulated thread of `rank`; returns its number. What `body` throws ends the simulation: run() throws it.
  std::size_t spawn(int rank, std::string name, std::function<void()> body);
  // Until every fiber has ended. Afterwards nothing of the simulation is running.
  void run();

  Nanoseconds now() const { return now_; }
  Random& random() { return random_; }
  std::uint64_t trace_hash() const { return trace_; }
  std::uint64_t turns() const { return turns_; }

  // Inside a fiber.
  void yield();
  void maybe_yield();
  void sleep(Nanoseconds duration);
  void wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Nanoseconds limit);
  void join(std::size_t fiber);

  // Anywhere. Makes those that wait on the word ready; how many they were.
  std::size_t wake(const std::atomic<std::uint32_t>& word);
  // Runs `event` between turns, `delay` from now; never inside a fiber.
  void after(Nanoseconds delay, std::function<void()> event);
  // A frozen rank's fibers get no turn until it thaws: a process that was stopped, or killed.
  void freeze(int rank);
  void thaw(int rank);
  bool frozen(int rank) const { return frozen_.contains(rank); }

 private:
  static constexpr std::size_t nobody = ~std::size_t{0};
  enum class State : std::uint8_t { ready, parked, waiting, ended };  // parked: ready, but its rank is frozen
  struct Thread {
    int rank;
    std::string name;
    std::unique_ptr<Fiber> fiber;
    State state = State::ready;
    const void* word = nullptr;     // what it waits on: a word,
    std::size_t joining = nobody;   // the end of a thread, or neither: time alone
    std::uint64_t wait_number = 0;  // tells a timer of this wait from one of an earlier wait
  };
  struct Timer {
    Nanoseconds time;
    std::uint64_t number;  // the order of those at one time
    std::size_t thread;    // or the event, if there is one
    std::uint64_t wait_number;
    std::shared_ptr<std::function<void()>> event;
    bool operator>(const Timer& other) const { return time != other.time ? time > other.time : number > other.number; }
  };

  void block(const void* word, std::size_t joining, Nanoseconds limit);
  void give_way();
  void make_ready(std::size_t thread);
  void fire_timers();
  void take_turn();
  void mix(std::uint64_t value);
  std::string picture() const;

  SchedulerOptions options_;
  Random random_;
  Nanoseconds now_ = 1'000'000'000;  // not 0, so that differences of times can't hide a forgotten start
  std::uint64_t trace_ = 0;
  std::uint64_t turns_ = 0;
  std::uint64_t timers_made_ = 0;
  std::size_t alive_ = 0;
  std::size_t running_ = nobody;
  std::vector<Thread> threads_;
  std::vector<std::size_t> ready_;
  std::set<int> frozen_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::exception_ptr thrown_;
};

}  // namespace rondo::transport::sim
