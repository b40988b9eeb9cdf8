// SimWorld: real communicators over the simulated network; what make_local_world() is for threads.
//
// Each rank is a fiber with an engine, a control tree and an executor of its own. The body runs once a rank. One OS
// thread; everything happens within run().
#pragma once

#include <rondo/communicator.hpp>

#include "communicator/implementation.hpp"
#include "transports/sim/sim_network.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace rondo::testing {

using base::Nanoseconds;
namespace sim = transport::sim;

struct WorldOptions {
  sim::SchedulerOptions scheduler;
  sim::NetworkOptions network;
  std::vector<tuner::Pin> pins;
  bool deterministic = false;
  Nanoseconds deadline = 2'000'000'000;
  Nanoseconds heartbeat = 10'000'000'000;
  std::size_t slice_bytes = 0;  // 0: a slot's
  // To plant bugs; null: SimSystem as it is.
  std::function<std::unique_ptr<sim::SimSystem>(sim::Scheduler&, int rank)> make_system;
};

class SimWorld {
 public:
  explicit SimWorld(const WorldOptions& options);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  // Until all ranks have ended. What a body throws comes out here, as do sim::SimulationErrors.
  void run(std::function<void(Communicator&)> body);

  sim::Scheduler& scheduler() { return scheduler_; }
  sim::SimNetwork& network() { return network_; }
  int size() const { return network_.size(); }
  // In an event. The rank gets no turn any more; what the others see is its connections closing. Once all others have
  // ended it runs on, cut off from everything and with its communicator poisoned, so that its memory is released.
  void kill(int rank);
  // As a stopped process: silent, with open connections.
  void stop(int rank);
  bool has_ended(int rank) const { return ended_.contains(rank); }

 private:
  void run_rank(int rank, const std::function<void(Communicator&)>& body);
  void release_gone();

  WorldOptions options_;
  sim::Scheduler scheduler_;
  sim::SimNetwork network_;
  std::vector<std::unique_ptr<sim::SimSystem>> systems_;
  std::vector<std::unique_ptr<base::Poller>> pollers_;
  std::vector<base::Poller*> wakers_;
  std::vector<std::map<int, std::unique_ptr<bootstrap::ControlLink>>> links_;
  std::vector<std::string> describe_;
  std::vector<std::weak_ptr<communicator::Implementation>> implementations_;
  std::set<int> ended_;
  std::set<int> gone_;  // killed or stopped
  bool released_ = false;
};

// Hosts that `ranks` ranks are spread over: every(ranks, 1) share memory, every(ranks, ranks) none of it.
std::vector<int> spread_over(int ranks, int hosts);

}  // namespace rondo::testing
