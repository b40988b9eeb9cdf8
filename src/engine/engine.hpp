// Engine: everything that runs on this rank for one world (the ranks that joined together): the service thread (control
// tree, transports, heartbeats), the worker (operations nobody waits for), the order of operations, and failure
// handling.
//
// Calls from any thread. run() and wait() block the caller and step its operation meanwhile.
#pragma once

#include "base/poller.hpp"
#include "base/wait.hpp"
#include "bootstrap/control_tree.hpp"
#include "engine/communicator_state.hpp"
#include "engine/operation.hpp"
#include "transports/fabric.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace rondo::engine {

struct EngineParts {
  base::System* system = nullptr;  // outlives the engine
  std::unique_ptr<base::Poller> poller;
  std::unique_ptr<bootstrap::ControlTree> tree;
  std::unique_ptr<transport::Fabric> fabric;
  base::DoorbellWord* bell = nullptr;  // lives in the fabric's memory
  base::BackOff back_off;
  // Of communicators with wires, where a look is a system call, and a peer answers within ten microseconds.
  base::BackOff wire_back_off{.spins = 30, .yields = 1000};
  std::vector<std::string> describe;  // by world rank, "rank 3 (host, pid 17)"
  std::shared_ptr<void> keep_alive;   // destroyed last
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  explicit Engine(EngineParts parts);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Starts the threads. Before it nothing else may be called.
  void start();
  // Ends the threads; every communicator must be closed or poisoned. Called by the destructor too.
  void stop();
  // Says goodbye and waits for all ranks' goodbyes: true if all left in good order.
  bool leave(base::Nanoseconds deadline);
  void leave_with_error(const std::string& why);

  base::System& system() { return *parts_.system; }
  transport::Fabric& fabric() { return *parts_.fabric; }
  bootstrap::ControlTree& tree() { return *parts_.tree; }
  const std::string& describe(int world_rank) const { return parts_.describe[static_cast<std::size_t>(world_rank)]; }

  void add(const std::shared_ptr<CommunicatorState>& communicator);
  void remove(const CommunicatorState& communicator);

  // Steps an operation that is in no queue to its end on this thread. Throws its error (and has poisoned by then).
  void run(Operation& operation);
  // Queues: `operation` runs after those in `after` (null entries are skipped) have ended.
  void submit(const std::shared_ptr<Operation>& operation, std::initializer_list<std::shared_ptr<Operation>> after);
  // Until the operation has ended, or `limit` from now has passed (false). `blocked`: the caller does nothing else with
  // the communicator before the operation has ended, not even after the limit.
  bool wait(const std::shared_ptr<Operation>& operation, base::Nanoseconds limit, bool blocked);

  // Returns once no submitted operation of the communicator is left. After poisoning, or when all were waited for.
  void drain(CommunicatorState& communicator);

  // Poisons here and on all other ranks.
  void fail(CommunicatorState& communicator, const Error& error);
  std::mutex& mutex() { return mutex_; }

 private:
  enum class Visit : std::uint8_t { blocked, moved, ended };

  void service_loop();
  void worker_loop();
  Visit visit(Operation& operation) noexcept;
  static bool spin(Operation& operation, std::uint32_t looks);
  Visit visit_owned(const std::shared_ptr<Operation>& operation);
  const base::BackOff& back_off_of(const Operation& operation) const {
    return operation.communicator().has_wires.load(std::memory_order_relaxed) ? parts_.wire_back_off : parts_.back_off;
  }
  void start_timing(Operation& operation);
  void check_time(Operation& operation);
  void end(const std::shared_ptr<Operation>& operation);
  void make_runnable(const std::shared_ptr<Operation>& operation);
  void wake_worker();

  void on_message(const bootstrap::ControlMessage& message);
  bool keep_for_later(const bootstrap::ControlMessage& message);
  void on_rank_failed(int world_rank, const std::string& why);
  void inquire(Operation& operation);
  std::string current_exchange(const CommunicatorState& communicator);
  Error deadline_error(Operation& operation);
  std::shared_ptr<CommunicatorState> find(std::uint64_t context);
  bool poison_locally(CommunicatorState& communicator, const Error& error);
  void publish(CommunicatorState& communicator);

  EngineParts parts_;
  std::unique_ptr<base::SystemThread> service_;
  std::unique_ptr<base::SystemThread> worker_;
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::vector<std::shared_ptr<Operation>> runnable_;
  std::map<std::uint64_t, std::weak_ptr<CommunicatorState>> communicators_;
  std::map<int, std::string> failed_ranks_;
  std::deque<bootstrap::ControlMessage> early_verdicts_;  // of communicators that this rank has not made yet
  base::DoorbellWord worker_bell_;
};

}  // namespace rondo::engine
