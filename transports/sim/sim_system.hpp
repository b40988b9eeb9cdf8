// SimSystem: the System of one simulated rank. SimPoller: what its service thread sleeps on.
//
// Both belong to one scheduler, which outlives them, and are used on its one OS thread, inside fibers and in events.
#pragma once

#include "base/poller.hpp"
#include "base/system.hpp"
#include "transports/sim/scheduler.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rondo::transport::sim {

class SimSystem : public base::System {
 public:
  SimSystem(Scheduler& scheduler, int rank) : scheduler_(scheduler), rank_(rank) {}
  Nanoseconds now() const override { return scheduler_.now(); }
  void yield() override { scheduler_.yield(); }
  void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Nanoseconds limit) override {
    scheduler_.wait(word, expected, limit);
  }
  // Now and then somebody else runs right after the wake-up.
  void futex_wake(std::atomic<std::uint32_t>& word) override {
    scheduler_.wake(word);
    scheduler_.maybe_yield();
  }
  std::unique_ptr<base::SystemThread> start_thread(std::string name, std::function<void()> body) override;
  bool heavy_barrier() override { return true; }  // one OS thread sees its own stores in order
  std::uint32_t spin_limit() const override { return 0; }

 private:
  Scheduler& scheduler_;
  int rank_;
};

// There are no descriptors: add() and its siblings throw Error(internal).
class SimPoller final : public base::Poller {
 public:
  explicit SimPoller(base::System& system) : system_(system) {}
  void add(int fd, bool writable, std::function<void()> ready) override;
  void set_writable(int fd, bool writable) override;
  void remove(int fd) override;
  void wake() override;
  void wait(Nanoseconds limit) override;

 private:
  base::System& system_;
  std::atomic<std::uint32_t> woken_{0};
};

}  // namespace rondo::transport::sim
