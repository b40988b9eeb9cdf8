#include "communicator/implementation.hpp"

#include "algorithms/proof.hpp"
#include "base/log.hpp"
#include "communicator/validate.hpp"
#include "executor/cpu/plan_interceptor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace rondo::communicator {
namespace {

constexpr std::uint32_t tags_a_channel = 0x10000;
constexpr std::size_t most_prepared = 4096;

std::size_t last_level_cache() {
  static const std::size_t bytes = [] {
    const long found = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return found > 0 ? static_cast<std::size_t>(found) : std::size_t{32} << 20;
  }();
  return bytes;
}

bool reduces(Collective c) {
  return c == Collective::all_reduce || c == Collective::reduce || c == Collective::reduce_scatter ||
         c == Collective::reduce_scatter_v;
}

// nccl-tests' size: the larger side.
std::uint64_t message_bytes(Collective c, std::uint64_t count, DataType type, int size) {
  std::uint64_t bytes = count * size_of(type);
  switch (c) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter: bytes *= static_cast<std::uint64_t>(size); break;
    default: break;
  }
  return bytes;
}

}  // namespace

Implementation::Implementation(std::shared_ptr<World> world, std::uint64_t context, std::string name,
                               std::vector<int> members, int rank, bool is_world)
    : world_(std::move(world)),
      state_(std::make_shared<engine::CommunicatorState>(context, std::move(name), std::move(members), rank)),
      is_world_(is_world) {
  engine::Engine* engine = world_->engine.get();
  matcher_ =
      std::make_shared<Matcher>(*this, size(), [engine] { base::ring(engine->fabric().own_bell(), engine->system()); });
  inline_ = std::make_shared<CollectiveOperation>(state_, *this);
  inline_->work = std::make_shared<engine::WorkState>();
  learn_paths();
  world_->engine->add(state_);
}

Implementation::~Implementation() {
  engine::Engine& engine = *world_->engine;
  engine.remove(*state_);
  engine.fabric().close_context(state_->context);
}

void Implementation::check() const {
  if (closed_.load(std::memory_order_acquire))
    throw Error(ErrorCode::invalid_usage, fmt::format("communicator {} is closed", state_->name),
                "issue operations before close()");
  if (state_->poisoned()) {
    state_->error_seen.store(true, std::memory_order_relaxed);
    throw state_->error();
  }
}

base::Nanoseconds Implementation::limit(const CallOptions& options) const {
  if (options.deadline.count() < 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("the deadline of {} ns is negative", options.deadline.count()),
                "use a positive duration, or 0 for the communicator's");
  return options.deadline.count() > 0 ? options.deadline.count() : world_->settings.deadline;
}

void Implementation::check_options(const CallOptions& options) const {
  static_cast<void>(limit(options));
  if (options.stream == nullptr) return;
  engine::StreamState& stream = *options.stream->state();
  const std::lock_guard lock(stream.mutex);
  const std::shared_ptr<engine::Engine> owner = stream.engine.lock();
  if (owner == world_->engine) return;
  if (owner != nullptr)
    throw Error(ErrorCode::invalid_usage,
                fmt::format("{}: the stream has operations of another world's communicator", name()),
                "use one stream for communicators that were split from each other, and another for each world");
  stream.engine = world_->engine;
  stream.tail.reset();  // of a world that has ended
}

executor::BoundPlan& Implementation::bound_plan(const algorithms::Algorithm& algorithm, const plan::Shape& shape,
                                                int channel) {
  auto& slot = plans_[{&algorithm, shape.root, channel}];
  if (slot == nullptr) {
    algorithms::ensure_proved(algorithm, shape);
    plan::RankPlan rank_plan = algorithm.generate(shape, rank());
    if (const auto& intercept = executor::plan_interceptor()) intercept(rank_plan);
    slot = std::make_unique<executor::BoundPlan>(std::move(rank_plan), *this,
                                                 static_cast<std::uint32_t>(channel) * tags_a_channel);
  }
  return *slot;
}

void Implementation::learn_paths() {
  if (world_->wires.empty()) return;
  for (const int from : state_->members) {
    const std::vector<std::byte>& wires = world_->wires[static_cast<std::size_t>(from)];
    for (const int to : state_->members) {
      const auto bit = static_cast<std::size_t>(to);
      if ((wires[bit / 8] & std::byte{1} << bit % 8) != std::byte{0})
        return state_->has_wires.store(true, std::memory_order_relaxed);
    }
  }
}

tuner::Paths Implementation::paths() const {
  return state_->has_wires.load(std::memory_order_relaxed) ? tuner::Paths::wires : tuner::Paths::memory;
}

std::shared_ptr<Prepared> Implementation::make_prepared(const CollectiveCall& call) {
  auto prepared = std::make_shared<Prepared>();
  engine::Signature& signature = prepared->signature;
  signature.collective = call.collective;
  signature.type = call.type;
  signature.op = call.op.op;
  signature.root = call.root;
  signature.count = call.count;
  prepared->kind = engine::hash_of_kind(signature);

  const plan::Shape shape{tuner::even_form(call.collective), size(), std::max(call.root, 0)};
  const std::uint64_t bytes = message_bytes(call.collective, call.count, call.type, size());
  // Uneven forms choose by what all ranks know: nothing but the form. `direct` exists for all of them.
  const algorithms::Algorithm& algorithm = call.uneven() ? *algorithms::find(shape.collective, "direct")
                                                         : tuner::choose(world_->policy, shape, bytes, paths());
  prepared->algorithm = algorithm.name;
  const std::size_t element = size_of(call.type);
  const int channels = world_->channels > 1 && (call.uneven() || bytes >= 256 * 1024) ? world_->channels : 1;
  for (int c = 0; c < channels; ++c) prepared->channels.push_back(&bound_plan(algorithm, shape, c));

  const plan::RankPlan& plan = prepared->channels[0]->plan;
  const auto chunks = [&](int b) { return static_cast<std::size_t>(std::max(plan.chunks[b], 1)); };
  const std::size_t grain = executor::grain_of(element);
  if (call.uneven()) {
    prepared->tables[0] = *call.input_table;
    prepared->tables[1] = *call.output_table;
  } else {
    for (int b = 0; b < 2; ++b) {
      const bool cut = shape.collective == Collective::all_reduce || shape.collective == Collective::reduce ||
                       shape.collective == Collective::broadcast;
      prepared->tables[b] = cut ? executor::ChunkTable::cut(call.count, chunks(b), grain)
                                : executor::ChunkTable::repeated(chunks(b), call.count);
    }
  }
  executor::Call& run = prepared->call;
  run.type = call.type;
  run.element = element;
  if (reduces(call.collective)) run.kernel = executor::reduce_kernel(call.type, call.op.op);
  run.scaled = call.op.op == ReduceOp::scaled_sum && reduces(call.collective);
  run.divisor = call.op.op == ReduceOp::avg && reduces(call.collective) ? static_cast<std::uint32_t>(size()) : 1;
  run.slice = std::max<std::size_t>(1, world_->slice_bytes / element);
  run.tile = executor::slices_a_tile * run.slice;
  const std::size_t touched =
      std::max(prepared->tables[0].longest() * chunks(0), prepared->tables[1].longest() * chunks(1)) * element;
  // Non-temporal stores pay once all ranks' inputs and outputs outgrow half of the last-level cache.
  run.stream_output = touched * 2 * static_cast<std::size_t>(size()) > last_level_cache() / 2;
  run.tables[0] = &prepared->tables[0];
  run.tables[1] = &prepared->tables[1];
  const bool sliced = executor::longest_share(run, plan, prepared->channels.size()) > run.slice;
  for (const executor::BoundPlan* bound : prepared->channels)
    bound->require_slots(sliced ? executor::slices_a_tile : 1);
  prepared->script = executor::Script(prepared->channels, run);
  return prepared;
}

const std::shared_ptr<const Prepared>& Implementation::prepare(const CollectiveCall& call) {
  const auto same = [&](const Prepared& p) {
    const engine::Signature& s = p.signature;
    return s.collective == call.collective && s.count == call.count && s.type == call.type && s.op == call.op.op &&
           s.root == call.root;
  };
  if (call.uneven()) return last_prepared_ = make_prepared(call);
  if (last_prepared_ != nullptr && same(*last_prepared_)) return last_prepared_;
  std::uint64_t hash = call.count * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(call.collective) * 0x10001ULL +
                       static_cast<std::uint64_t>(call.type) * 0x101ULL +
                       static_cast<std::uint64_t>(call.op.op) * 0x11ULL +
                       static_cast<std::uint64_t>(static_cast<std::int64_t>(call.root));
  for (const auto& candidate : prepared_[hash])
    if (same(*candidate)) return last_prepared_ = candidate;
  auto made = make_prepared(call);
  if (++prepared_count_ > most_prepared) {
    prepared_.clear();
    prepared_count_ = 1;
  }
  prepared_[hash].push_back(made);
  return last_prepared_ = made;
}

Work Implementation::start(const std::shared_ptr<engine::Operation>& operation,
                           std::shared_ptr<engine::Operation> order, const CallOptions& options) {
  auto work = std::make_shared<engine::WorkState>();
  work->engine = world_->engine;
  work->communicator = state_;
  work->operation = operation;
  operation->work = work;
  operation->timing.limit = limit(options);
  std::shared_ptr<engine::Operation> before;
  if (options.stream != nullptr) {
    operation->stream = options.stream->state();
    const std::lock_guard lock(operation->stream->mutex);
    before = std::exchange(operation->stream->tail, operation);
  }
  if (in_group()) {
    add_to_group(world_->engine, operation, {std::move(order), std::move(before)}, options.stream == nullptr);
  } else {
    world_->engine->submit(operation, {std::move(order), std::move(before)});
  }
  return Work(std::move(work));
}

void Implementation::remember_pairs(const CollectiveCall& call, std::uint64_t sequence) {
  if (!call.uneven() || !engine::counts_are_local(call.collective)) return;
  std::vector<std::size_t> counts[2];  // in, out
  const executor::ChunkTable* tables[2] = {call.input_table, call.output_table};
  const Collective all_to_many[2] = {Collective::scatter_v, Collective::gather_v};
  for (int side = 0; side < 2; ++side) {
    const bool one_each = call.collective == Collective::all_to_all_v || call.collective == all_to_many[side];
    if (one_each) counts[side] = tables[side]->lengths;  // the tables of ranks other than the root are empty
    else if (rank() != call.root) {
      counts[side].resize(static_cast<std::size_t>(size()));
      counts[side][static_cast<std::size_t>(call.root)] = tables[side]->length(0);
    }
  }
  state_->pair_counts.add(sequence, std::move(counts[0]), std::move(counts[1]));
}

Work Implementation::collective(const CollectiveCall& call, const CallOptions& options) {
  check();
  const std::unique_lock lock(issue_);
  const std::shared_ptr<const Prepared>& prepared = prepare(call);
  const bool idle = last_collective_ == nullptr ||
                    last_collective_->work->status.load(std::memory_order_acquire) != WorkStatus::pending;
  if (options.stream == nullptr && idle && !in_group()) {
    last_collective_.reset();
    inline_->work->error = nullptr;
    inline_->timing.limit = limit(options);
    remember_pairs(call, sequence_ + 1);
    inline_->set(prepared, call.input, call.output, call.op.factor, ++sequence_);
    inline_->start();
    try {
      world_->engine->run(*inline_);
    } catch (...) {
      state_->error_seen.store(true, std::memory_order_relaxed);
      write_flight_record();
      throw;
    }
    return Work();
  }
  check_options(options);  // refused before the collective has a number
  auto operation = std::make_shared<CollectiveOperation>(state_, *this);
  remember_pairs(call, sequence_ + 1);
  operation->set(prepared, call.input, call.output, call.op.factor, ++sequence_);
  auto order = std::exchange(last_collective_, operation);
  Work work = start(operation, std::move(order), options);
  if (options.stream == nullptr && !in_group()) work.wait();
  return work;
}

Work Implementation::run_point_to_point(const std::shared_ptr<engine::Operation>& operation,
                                        const std::shared_ptr<engine::Operation>& order, const CallOptions& options) {
  Work work = start(operation, order, options);
  if (options.stream == nullptr && !in_group()) work.wait();
  return work;
}

Work Implementation::send(const void* data, std::size_t count, DataType type, int destination, int tag,
                          const CallOptions& options) {
  check();
  check_type("send", type);
  if (destination < 0 || destination >= size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("send: destination {} is not a rank of this communicator", destination),
                fmt::format("use 0 to {}", size() - 1));
  check_buffer("send", {"data", data, count}, type);
  check_options(options);  // refused before the send has a place in the order, or the next waits for it
  std::shared_ptr<engine::Operation> operation =
      std::make_shared<SendOperation>(state_, *this, data, count * size_of(type), type, destination, tag);
  std::shared_ptr<engine::Operation> order;
  {
    const std::lock_guard lock(point_to_point_mutex_);
    order = std::exchange(last_send_[destination], operation);
  }
  return run_point_to_point(operation, order, options);
}

Work Implementation::receive(void* data, std::size_t count, DataType type, int source, int tag,
                             const CallOptions& options) {
  check();
  check_type("receive", type);
  if (source != any_source && (source < 0 || source >= size()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("receive: source {} is not a rank of this communicator", source),
                fmt::format("use 0 to {}, or any_source", size() - 1));
  check_buffer("receive", {"data", data, count}, type);
  check_options(options);
  return run_point_to_point(
      std::make_shared<ReceiveOperation>(state_, matcher_, data, count * size_of(type), type, source, tag), nullptr,
      options);
}

transport::SendEnd* Implementation::open_send(int peer, std::uint32_t tag) {
  const std::lock_guard lock(ends_mutex_);
  auto& end = send_ends_[{peer, tag}];
  if (end == nullptr)
    end = world_->engine->fabric().open_send({state_->context, state_->members[static_cast<std::size_t>(rank())],
                                              state_->members[static_cast<std::size_t>(peer)], tag});
  return end;
}

transport::ReceiveEnd* Implementation::try_open_receive(int peer, std::uint32_t tag) {
  const std::lock_guard lock(ends_mutex_);
  auto& end = receive_ends_[{peer, tag}];
  if (end == nullptr)
    end = world_->engine->fabric().try_open_receive({state_->context, state_->members[static_cast<std::size_t>(peer)],
                                                     state_->members[static_cast<std::size_t>(rank())], tag});
  return end;
}

bool Implementation::find_window(const std::byte* data, std::size_t bytes, transport::WindowReference& where) {
  if (world_->window_count.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(world_->mutex);
  for (const auto& weak : world_->windows) {
    const auto window = weak.lock();
    if (window == nullptr || data < window->data || data + bytes > window->data + window->bytes) continue;
    where = {window->id, static_cast<std::uint64_t>(data - window->data)};
    return true;
  }
  return false;
}

const std::byte* Implementation::peer_window(int peer, transport::WindowReference where, std::size_t bytes) {
  transport::Fabric& fabric = world_->engine->fabric();
  const int world_rank = state_->members[static_cast<std::size_t>(peer)];
  const std::byte* base = fabric.map_peer_window(world_rank, where.window);
  const std::size_t size = base == nullptr ? 0 : fabric.peer_window_bytes(world_rank, where.window);
  if (bytes > size || where.offset > size - bytes)
    throw Error(ErrorCode::transport,
                fmt::format("rank {} refers to bytes {} to {} of its window {}, which has {} bytes here", peer,
                            where.offset, where.offset + bytes, where.window, size),
                "a window must outlive the operations on it", world_rank);
  return base + where.offset;
}

void Implementation::abort(const std::string& reason) noexcept {
  state_->error_seen.store(true, std::memory_order_relaxed);  // who aborts knows
  try {
    world_->engine->fail(*state_,
                         Error(ErrorCode::aborted, fmt::format("rank {} of {} aborted: {}", rank(), name(), reason)));
  } catch (...) {  // out of memory: the poison could not be told; peers see the connection close
  }
}

void Implementation::finish(bool unwinding) noexcept {
  if (closed_.load(std::memory_order_acquire)) {
    world_->engine->drain(*state_);
    return;
  }
  try {
    if (!unwinding && !state_->poisoned()) {
      close();
      world_->engine->drain(*state_);
      return;
    }
  } catch (const std::exception& error) {
    state_->error_seen.store(true, std::memory_order_relaxed);
    base::log(base::LogLevel::warn, base::Subsystem::engine, "closing {}: {}", name(), error.what());
  }
  // A destructor cannot throw: an error that no call has reported yet must not vanish.
  if (state_->poisoned() && !unwinding && !state_->error_seen.exchange(true, std::memory_order_relaxed))
    base::log(base::LogLevel::warn, base::Subsystem::engine,
              "{} was destroyed after an error that no call reported: {}", name(), state_->error().what());
  if (!state_->poisoned()) abort("the communicator was destroyed while an exception was unwinding");
  write_flight_record();
  if (is_world_) {
    try {
      world_->engine->leave_with_error(state_->error().what());
    } catch (...) {
    }
  }
  closed_.store(true, std::memory_order_release);
  world_->engine->drain(*state_);
}

std::string Implementation::explain(Collective collective, std::size_t count, DataType type) const {
  const plan::Shape shape{tuner::even_form(collective), static_cast<std::int32_t>(state_->members.size()), 0};
  return tuner::explain(world_->policy, shape,
                        message_bytes(collective, count, type, static_cast<int>(state_->members.size())), paths());
}

}  // namespace rondo::communicator
