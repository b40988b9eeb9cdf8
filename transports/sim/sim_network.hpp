// SimNetwork: everything between the simulated ranks: who shares memory with whom, connections, windows, bells, control
// links, and how long things take. One a simulation.
//
// Ranks of one simulated host share memory, as with shm: the ends of a connection look at the same lines, doorbells are
// rung directly, windows can be read. Between hosts messages and credits travel as timed events, in order.
//
// isolate() is what the others see of a killed rank: nothing it sends after that arrives, its control links close after
// a while. Freezing its fibers is the scheduler's part.
//
// One OS thread; outlives every fabric and link, not the scheduler.
#pragma once

#include "bootstrap/control_link.hpp"
#include "transports/fifo_layout.hpp"
#include "transports/sim/sim_system.hpp"
#include "transports/transport.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rondo::transport::sim {

struct NetworkOptions {
  std::vector<int> hosts;  // of each rank; the size is the world's
  FifoLayout layout{8, 4096};
  Nanoseconds least_delay = 200;  // of a message, a credit, a control frame
  Nanoseconds most_delay = 20'000;
  Nanoseconds most_close_delay = 200'000;  // until the death of a rank is seen on its control links
  // The n-th return of credits between hosts has one too few, for good: a planted bug. Counted from 1; 0: none.
  std::uint64_t lose_credit = 0;
  // A wire rings its owner's bell only after arm(), as sockets do; otherwise always.
  bool ring_when_armed = false;
};

// One connection; each fabric holds those of its rank, events in flight hold it too.
struct SimConnection;

class SimNetwork {
 public:
  SimNetwork(Scheduler& scheduler, const NetworkOptions& options);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  Scheduler& scheduler() { return scheduler_; }
  const NetworkOptions& options() const { return options_; }
  int size() const { return static_cast<int>(options_.hosts.size()); }
  bool share_memory(int a, int b) const {
    return options_.hosts[static_cast<std::size_t>(a)] == options_.hosts[static_cast<std::size_t>(b)];
  }
  Nanoseconds delay() { return scheduler_.random().between(options_.least_delay, options_.most_delay); }
  base::DoorbellWord& bell(int rank) { return bells_[static_cast<std::size_t>(rank)]; }
  void ring(int rank) { base::ring(bell(rank), events_system_); }

  void isolate(int rank);
  bool isolated(int rank) const { return isolated_.contains(rank); }
  void on_isolate(std::function<void(int rank)> hook) { isolate_hooks_.push_back(std::move(hook)); }

  // The sender makes a connection, the receiver takes it once it has heard of it.
  std::shared_ptr<SimConnection> open(const ConnectionKey& key, base::System& system);
  std::shared_ptr<SimConnection> try_take(const ConnectionKey& key);
  bool loses_this_credit() { return ++credits_ == options_.lose_credit; }

  // Window memory stays until the network goes, as a mapping does when its owner dies.
  std::shared_ptr<WindowMapping> allocate_window(int rank, std::size_t bytes);
  const WindowMapping* find_window(int rank, std::uint64_t id) const;

 private:
  using Key = std::tuple<std::uint64_t, int, int, std::uint32_t>;
  static Key key_of(const ConnectionKey& key) { return {key.context, key.source, key.destination, key.tag}; }

  Scheduler& scheduler_;
  NetworkOptions options_;
  SimSystem events_system_;
  std::vector<base::DoorbellWord> bells_;
  std::set<int> isolated_;
  std::vector<std::function<void(int)>> isolate_hooks_;
  std::map<Key, std::shared_ptr<SimConnection>> offered_;  // made by the sender, not taken by the receiver yet
  std::map<std::pair<int, std::uint64_t>, std::shared_ptr<WindowMapping>> windows_;
  std::uint64_t credits_ = 0;
};

// The two ends of a control link between ranks `a` and `b`; each end's owner is woken when something arrives.
std::pair<std::unique_ptr<bootstrap::ControlLink>, std::unique_ptr<bootstrap::ControlLink>> make_sim_links(
    SimNetwork& network, int a, std::function<void()> wake_a, int b, std::function<void()> wake_b);

}  // namespace rondo::transport::sim
