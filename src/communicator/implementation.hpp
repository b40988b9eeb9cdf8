// Implementation: what a Communicator is made of. Judges calls, prepares plans, numbers collectives, starts operations.
//
// Any thread; collectives are numbered in the order in which they take `issue_`, which a blocking one holds to its end.
#pragma once

#include <rondo/communicator.hpp>

#include "base/settings.hpp"
#include "communicator/collective_operation.hpp"
#include "communicator/point_to_point.hpp"
#include "engine/engine.hpp"
#include "executor/cpu/bound_plan.hpp"
#include "tuner/choice.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace rondo::communicator {

// What all communicators of one world share on this rank.
struct World {
  std::shared_ptr<engine::Engine> engine;
  base::Settings settings;
  tuner::Policy policy;
  std::size_t slice_bytes = 64 * 1024;  // of one message, the same on all ranks
  int channels = 1;
  // By world rank: the bit of each rank that it reaches by a wire and not by memory. Empty: none. Known after joining.
  std::vector<std::vector<std::byte>> wires;
  std::mutex mutex;
  std::vector<std::weak_ptr<transport::WindowMapping>> windows;
  std::atomic<std::size_t> window_count{0};
};

// A collective as its caller described it.
struct CollectiveCall {
  Collective collective = Collective::barrier;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  DataType type = DataType::int8;
  Reduction op{};
  int root = -1;
  // Uneven forms: the chunk tables, and what all ranks can agree on as `count`.
  const executor::ChunkTable* input_table = nullptr;
  const executor::ChunkTable* output_table = nullptr;
  bool uneven() const { return input_table != nullptr; }
};

class Implementation final : public executor::ConnectionSource, public std::enable_shared_from_this<Implementation> {
 public:
  Implementation(std::shared_ptr<World> world, std::uint64_t context, std::string name, std::vector<int> members,
                 int rank, bool is_world);
  ~Implementation() override;

  int rank() const { return state_->rank; }
  int size() const { return static_cast<int>(state_->members.size()); }
  const std::string& name() const { return state_->name; }
  engine::CommunicatorState& state() { return *state_; }
  engine::Engine& engine() { return *world_->engine; }

  Work collective(const CollectiveCall& call, const CallOptions& options);
  Work send(const void* data, std::size_t count, DataType type, int destination, int tag, const CallOptions& options);
  Work receive(void* data, std::size_t count, DataType type, int source, int tag, const CallOptions& options);
  std::shared_ptr<Implementation> split(const SplitOptions& options);
  std::shared_ptr<transport::WindowMapping> allocate(std::size_t bytes);
  void close();
  void abort(const std::string& reason) noexcept;
  void check() const;
  // Called by the last handle: closes in good order, or aborts while unwinding or after an error.
  void finish(bool unwinding) noexcept;
  // Once the world's wires are known: how these members reach each other, as they all see it.
  void learn_paths();
  tuner::Paths paths() const;
  std::string explain(Collective collective, std::size_t count, DataType type) const;
  std::string flight_record() const;
  // To the file that RONDO_FLIGHT_RECORD names, if any, once: after an error.
  void write_flight_record() noexcept;

  transport::SendEnd* open_send(int peer, std::uint32_t tag) override;
  transport::ReceiveEnd* try_open_receive(int peer, std::uint32_t tag) override;
  bool find_window(const std::byte* data, std::size_t bytes, transport::WindowReference& where) override;
  const std::byte* peer_window(int peer, transport::WindowReference where, std::size_t bytes) override;

 private:
  friend class ::rondo::Group;

  const std::shared_ptr<const Prepared>& prepare(const CollectiveCall& call);
  std::shared_ptr<Prepared> make_prepared(const CollectiveCall& call);
  // Before an uneven collective whose counts only pairs know is recorded: what this rank exchanges with each.
  void remember_pairs(const CollectiveCall& call, std::uint64_t sequence);
  executor::BoundPlan& bound_plan(const algorithms::Algorithm& algorithm, const plan::Shape& shape, int channel);
  base::Nanoseconds limit(const CallOptions& options) const;
  // Refuses a negative deadline, and a stream of another world; binds the stream to this one.
  void check_options(const CallOptions& options) const;
  Work start(const std::shared_ptr<engine::Operation>& operation, std::shared_ptr<engine::Operation> order,
             const CallOptions& options);
  Work run_point_to_point(const std::shared_ptr<engine::Operation>& operation,
                          const std::shared_ptr<engine::Operation>& order, const CallOptions& options);
  std::vector<std::vector<std::byte>> exchange(std::span<const std::byte> bytes, const char* what);

  std::shared_ptr<World> world_;
  std::shared_ptr<engine::CommunicatorState> state_;
  bool is_world_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> record_written_{false};

  std::mutex issue_;  // the order of collectives
  std::uint64_t sequence_ = 0;
  std::shared_ptr<engine::Operation> last_collective_;  // the last that went through the queue
  std::shared_ptr<CollectiveOperation> inline_;
  std::shared_ptr<const Prepared> last_prepared_;
  std::unordered_map<std::uint64_t, std::vector<std::shared_ptr<const Prepared>>> prepared_;
  std::size_t prepared_count_ = 0;
  std::map<std::tuple<const algorithms::Algorithm*, int, int>, std::unique_ptr<executor::BoundPlan>> plans_;

  std::mutex ends_mutex_;
  std::map<std::pair<int, std::uint32_t>, transport::SendEnd*> send_ends_;
  std::map<std::pair<int, std::uint32_t>, transport::ReceiveEnd*> receive_ends_;

  std::mutex point_to_point_mutex_;
  std::shared_ptr<Matcher> matcher_;
  std::map<int, std::shared_ptr<engine::Operation>> last_send_;  // by destination

  std::atomic<std::uint64_t> splits_{0};
};

// Group's thread-local list: true and the operation is kept if this thread is inside a Group.
bool in_group();
// Throws Error(invalid_usage) if this thread's group has recorded what it has not submitted: no call may wait then.
void refuse_with_group_pending(const char* call);
void add_to_group(std::shared_ptr<engine::Engine> engine, std::shared_ptr<engine::Operation> operation,
                  std::vector<std::shared_ptr<engine::Operation>> after, bool blocking);

}  // namespace rondo::communicator
