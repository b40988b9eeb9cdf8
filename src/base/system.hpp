// System: the five things that waiting code needs from an operating system, behind one interface.
//
// RealSystem is Linux. transports/sim/ implements the same five over a virtual clock and a seeded scheduler, so that
// the engine, the executor and the control tree run unchanged in simulation, and every failure replays from its seed.
// Code above base/ must take time, sleep, wake and start threads through here and nowhere else.
//
// Thread-safe; lives as long as everything that uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rondo::base {

using Nanoseconds = std::int64_t;

// A joinable thread of a System. join() must be called before destruction.
class SystemThread {
 public:
  SystemThread() = default;
  SystemThread(const SystemThread&) = delete;
  SystemThread& operator=(const SystemThread&) = delete;
  virtual ~SystemThread() = default;
  virtual void join() = 0;
};

class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  // Monotonic time.
  virtual Nanoseconds now() const = 0;
  // Gives the processor to somebody else who is ready.
  virtual void yield() = 0;
  // Sleeps while *word == expected, at most `limit`. May return early for no reason. Works across processes that map
  // the word at different addresses.
  virtual void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Nanoseconds limit) = 0;
  // Wakes everybody who sleeps on the word.
  virtual void futex_wake(std::atomic<std::uint32_t>& word) = 0;
  virtual std::unique_ptr<SystemThread> start_thread(std::string name, std::function<void()> body) = 0;
  // After this call, every other thread that runs code of this library in any process has passed a full memory barrier
  // (membarrier's global expedited form). False where the system cannot: then ringers must fence (see doorbell.hpp).
  virtual bool heavy_barrier() = 0;
  // How many times a waiter may look before yielding pays; 0 in simulation.
  virtual std::uint32_t spin_limit() const = 0;

  static System& real();
};

}  // namespace rondo::base
