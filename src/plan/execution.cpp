#include "plan/execution.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace rondo::plan {
namespace {

const char* buffer_name(Buffer buffer) {
  return buffer == Buffer::input ? "input" : buffer == Buffer::output ? "output" : "scratch";
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

}  // namespace

template <class Value>
Execution<Value>::Execution(std::span<const RankPlan> plans, const Network& network, std::int32_t tiles,
                            TileOrder order)
    : plans_(plans),
      network_(network),
      tiles_(tiles),
      tile_order_(order),
      reduces_(reduces(plans.front().collective)),
      races_(network.needs_clocks && plans.front().collective != Collective::barrier),
      lanes_(network.lanes.size()),
      wires_(network.wires.size()),
      clocks_(races_ ? network.lanes.size() : 1) {
  lay_out();
  fill_inputs();
  moments_.resize(lanes_.size());
  if (races_)
    for (std::size_t l = 0; l < lanes_.size(); ++l) clocks_.hold(0);
  for (std::size_t l = 0; l < lanes_.size(); ++l)
    if (network_.lanes[l].steps == 0) lanes_[l].finished = true;
  if (tile_order_ == TileOrder::by_length) sort_steps();
}

template <class Value>
void Execution<Value>::sort_steps() {
  order_.resize(lanes_.size());
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    const RankPlan& plan = plan_of(static_cast<std::int32_t>(l));
    const Lane& code = plan.lanes[static_cast<std::size_t>(network_.lanes[l].lane)];
    std::vector<Position>& order = order_[l];
    order.reserve(static_cast<std::size_t>(network_.lanes[l].steps));
    std::int64_t step_of_tile = 0;
    for (std::size_t b = 0; b < code.blocks.size(); ++b)
      for (std::int32_t j = 0; j < code.blocks[b].count; ++j)
        for (std::size_t s = 0; s < code.blocks[b].steps.size(); ++s) {
          const ChunkRef& extent = code.blocks[b].steps[s].extent;
          order.push_back({length_key(plan, extent.buffer, plan.chunk_at(extent, j)), b, s, j, step_of_tile++});
        }
    std::stable_sort(order.begin(), order.end(),
                     [](const Position& a, const Position& b) { return a.length < b.length; });
  }
}

template <class Value>
void Execution<Value>::go_to(std::int32_t lane, std::size_t position) {
  LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  const Position& to = order_[static_cast<std::size_t>(lane)][position];
  state.position = position;
  state.block = to.block;
  state.step = to.step;
  state.turn = to.turn;
  state.step_of_tile = to.step_of_tile;
}

template <class Value>
void Execution<Value>::lay_out() {
  std::size_t cells = 0;
  for (const RankPlan& plan : plans_) {
    cell_base_.push_back(cells);
    cells += static_cast<std::size_t>(plan.chunks[0] + plan.chunks[1]) * static_cast<std::size_t>(tiles_) +
             static_cast<std::size_t>(plan.chunks[2]) * static_cast<std::size_t>(plan.scratch_tiles);
  }
  for (auto& memory : memory_) memory.resize(cells);
  if (races_) cells_.resize(cells);
}

// The chunk of input that an output chunk is the same memory as in place, or none. include/rondo/communicator.hpp.
template <class Value>
std::int32_t Execution<Value>::alias_of(const RankPlan& plan, std::int32_t output_chunk) const {
  switch (plan.collective) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::all_to_all: return output_chunk < plan.chunks[0] ? output_chunk : none;
    case Collective::all_gather:
    case Collective::gather: return output_chunk == plan.rank ? 0 : none;
    case Collective::reduce_scatter: return plan.rank;
    case Collective::scatter: return plan.rank == plan.root ? plan.rank : none;
    default: return none;
  }
}

template <class Value>
std::size_t Execution<Value>::cell(const RankPlan& plan, Buffer buffer, std::int32_t chunk, std::int32_t tile,
                                   Mode mode) const {
  const std::size_t base = cell_base_[static_cast<std::size_t>(plan.rank)];
  const auto in = static_cast<std::size_t>(plan.chunks[0]), out = static_cast<std::size_t>(plan.chunks[1]);
  const auto c = static_cast<std::size_t>(chunk), t = static_cast<std::size_t>(tile);
  if (buffer == Buffer::scratch)
    return base + (in + out) * static_cast<std::size_t>(tiles_) +
           static_cast<std::size_t>(plan.chunks[2]) * (t % static_cast<std::size_t>(plan.scratch_tiles)) + c;
  const std::size_t of_tile = base + (in + out) * t;
  if (buffer == Buffer::input) return of_tile + c;
  if (mode == in_place) {
    const std::int32_t alias = alias_of(plan, chunk);
    if (alias != none) return of_tile + static_cast<std::size_t>(alias);
  }
  return of_tile + in + c;
}

template <class Value>
void Execution<Value>::fill_inputs() {
  for (const RankPlan& plan : plans_)
    for (std::int32_t t = 0; t < tiles_; ++t)
      for (std::int32_t c = 0; c < plan.chunks[0]; ++c)
        for (const Mode mode : {out_of_place, in_place})
          memory_[mode][cell(plan, Buffer::input, c, t, mode)] = Value::of({t, plan.rank, c});
  const Collective collective = plans_.front().collective;
  if (!reduces_ && collective != Collective::barrier) return;
  const std::int32_t chunks = plans_.front().chunks[0];
  for (std::int32_t t = 0; t < tiles_; ++t)
    for (std::int32_t c = 0; c < chunks; ++c) {
      Value sum = Value::of({t, 0, c});
      Contribution twice;
      for (std::int32_t r = 1; r < plans_.front().size; ++r) unite(sum, Value::of({t, r, c}), twice);
      complete_.push_back(sum);
    }
}

template <class Value>
void Execution<Value>::refuse(std::int32_t lane, Violation violation, const std::string& what) const {
  const LaneOfRank& where = network_.lanes[static_cast<std::size_t>(lane)];
  const LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  throw Violated{violation_at(plan_of(lane), violation, where.lane, state.step_of_tile,
                              state.tile == 0 ? what : fmt::format("{} (in tile {})", what, state.tile))};
}

template <class Value>
void Execution<Value>::make_ready(std::int32_t lane) {
  LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  if (state.finished || state.queued) return;
  state.queued = true;
  ready_.push_back(lane);
}

// Whether the lane's step can fire; else it is registered where it will be woken. Conditions that hold stay so until
// the lane itself changes them, so a later visit goes on where this one stopped.
template <class Value>
bool Execution<Value>::conditions_hold(std::int32_t lane, const RankPlan& plan, const Step& step) {
  LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  const std::size_t receives = step.operands.size(), sends = receives + step.sends.size(),
                    drains = sends + step.drain.size(), afters = drains + step.after.size();
  for (; state.condition < afters; ++state.condition) {
    const std::size_t i = state.condition;
    if (i < receives) {
      const Operand& operand = step.operands[i];
      if (operand.kind == Operand::Kind::local) continue;
      const std::int32_t w = wire_of(plan, operand.connection);
      WireState& wire = wires_[static_cast<std::size_t>(w)];
      if (wire.in_flight > 0) continue;
      wire.receiver_waits = true;
      state.blocked_wire = w;
    } else if (i < drains) {
      const bool drain = i >= sends;
      const std::int32_t connection = drain ? step.drain[i - sends] : step.sends[i - receives].connection;
      const std::int32_t w = wire_of(plan, connection);
      WireState& wire = wires_[static_cast<std::size_t>(w)];
      if (wire.in_flight < (drain ? 1 : network_.wires[static_cast<std::size_t>(w)].slots)) continue;
      wire.sender_waits = true;
      state.blocked_wire = w;
    } else {
      const After& after = step.after[i - drains];
      const std::int32_t other = network_.lane_base[static_cast<std::size_t>(plan.rank)] + after.lane;
      if (state.tile < after.lag) continue;
      const std::int64_t needed =
          (state.tile - after.lag) * network_.lanes[static_cast<std::size_t>(other)].steps + after.step;
      if (lanes_[static_cast<std::size_t>(other)].tick > needed) continue;
      lanes_[static_cast<std::size_t>(other)].waiters.push_back(lane);
      state.blocked_lane = other;
    }
    return false;
  }
  state.condition = 0;
  state.blocked_wire = state.blocked_lane = none;
  return true;
}

template <class Value>
bool Execution<Value>::happened_before(std::int32_t lane, std::uint32_t tick, std::int32_t current) const {
  return lane == current || clocks_.at(lanes_[static_cast<std::size_t>(current)].clock, lane) >= tick;
}

template <class Value>
std::int32_t Execution<Value>::add_access(std::size_t at, std::int32_t lane, std::uint32_t tick) {
  std::int32_t id = free_access_;
  if (id != none) {
    free_access_ = accesses_[static_cast<std::size_t>(id)].next;
  } else {
    id = static_cast<std::int32_t>(accesses_.size());
    accesses_.emplace_back();
  }
  accesses_[static_cast<std::size_t>(id)] = {lane, tick, cells_[at].readers};
  cells_[at].readers = id;
  return id;
}

template <class Value>
void Execution<Value>::read(std::int32_t lane, std::size_t at, const ChunkRef& ref) {
  const Cell& here = cells_[at];
  if (here.writer != none && !happened_before(here.writer, here.written, lane))
    refuse(lane, Violation::race,
           fmt::format("reads {} chunk {} while lane {} may still be writing it", buffer_name(ref.buffer), ref.base,
                       network_.lanes[static_cast<std::size_t>(here.writer)].lane));
  add_access(at, lane, lanes_[static_cast<std::size_t>(lane)].tick + 1);
}

template <class Value>
void Execution<Value>::write(std::int32_t lane, std::size_t at, const ChunkRef& ref) {
  Cell& here = cells_[at];
  if (here.writer != none && !happened_before(here.writer, here.written, lane))
    refuse(lane, Violation::race,
           fmt::format("writes {} chunk {} while lane {} may still be writing it", buffer_name(ref.buffer), ref.base,
                       network_.lanes[static_cast<std::size_t>(here.writer)].lane));
  while (here.readers != none) {
    const std::int32_t id = here.readers;
    const Access access = accesses_[static_cast<std::size_t>(id)];
    if (access.tick == 0 || !happened_before(access.lane, access.tick, lane)) {
      const LaneOfRank& reader = network_.lanes[static_cast<std::size_t>(access.lane)];
      refuse(lane, Violation::race,
             fmt::format("writes {} chunk {} (in place) while rank {}, lane {} may still be reading it",
                         buffer_name(ref.buffer), ref.base, reader.rank, reader.lane));
    }
    here.readers = access.next;
    accesses_[static_cast<std::size_t>(id)].next = free_access_;
    free_access_ = id;
  }
  here.writer = lane;
  here.written = lanes_[static_cast<std::size_t>(lane)].tick + 1;
}

// Pops the oldest message, and joins its clock to the lane's. The caller frees it.
template <class Value>
std::int32_t Execution<Value>::take_message(std::int32_t lane, std::int32_t w) {
  WireState& wire = wires_[static_cast<std::size_t>(w)];
  const std::int32_t id = wire.head;
  Message& message = messages_[static_cast<std::size_t>(id)];
  wire.head = message.next;
  if (wire.head == none) wire.tail = none;
  --wire.in_flight;
  if (wire.sender_waits) {
    wire.sender_waits = false;
    make_ready(network_.wires[static_cast<std::size_t>(w)].sending_lane);
  }
  if (races_) {
    LaneState& state = lanes_[static_cast<std::size_t>(lane)];
    clocks_.join(state.clock, message.clock, network_.wires[static_cast<std::size_t>(w)].sending_lane, message.tick);
    clocks_.drop(message.clock);
    if (message.reference != none) {
      Access& access = accesses_[static_cast<std::size_t>(message.reference)];
      access.lane = lane;
      access.tick = state.tick + 1;
    }
  }
  message.next = free_message_;
  free_message_ = id;
  return id;
}

template <class Value>
void Execution<Value>::send(std::int32_t lane, std::int32_t w, const Value (&value)[modes], std::int64_t length,
                            std::int32_t reference) {
  std::int32_t id = free_message_;
  if (id != none) {
    free_message_ = messages_[static_cast<std::size_t>(id)].next;
  } else {
    id = static_cast<std::int32_t>(messages_.size());
    messages_.emplace_back();
  }
  Message& message = messages_[static_cast<std::size_t>(id)];
  for (std::size_t mode = 0; mode < modes; ++mode) message.value[mode] = value[mode];
  message.length = length;
  message.next = none;
  message.reference = reference;
  if (races_) {
    const LaneState& state = lanes_[static_cast<std::size_t>(lane)];
    message.clock = state.clock;
    message.tick = state.tick + 1;
    clocks_.hold(message.clock);
  }
  WireState& wire = wires_[static_cast<std::size_t>(w)];
  if (wire.tail == none) wire.head = id;
  else messages_[static_cast<std::size_t>(wire.tail)].next = id;
  wire.tail = id;
  ++wire.in_flight;
  if (wire.receiver_waits) {
    wire.receiver_waits = false;
    make_ready(network_.wires[static_cast<std::size_t>(w)].receiving_lane);
  }
}

template <class Value>
void Execution<Value>::check_finish(std::int32_t lane, const Value (&value)[modes], std::int64_t length,
                                    std::int32_t tile) {
  if (!reduces_) return;
  const auto chunks = static_cast<std::size_t>(plans_.front().chunks[0]);
  const Value& wanted = complete_[static_cast<std::size_t>(tile) * chunks + static_cast<std::size_t>(length)];
  for (const Value& v : value)
    if (v.hash != wanted.hash)
      refuse(lane, Violation::finish, "finishes an incomplete reduction; " + describe(v, wanted));
}

template <class Value>
void Execution<Value>::fire(std::int32_t lane, const RankPlan& plan, const Step& step) {
  LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  const auto resolve = [&](const ChunkRef& ref) {
    return ChunkRef{ref.buffer, ref.stride == 0 ? ref.base : plan.chunk_at(ref, state.turn), 0};
  };
  const ChunkRef extent = resolve(step.extent);
  const std::int64_t length = length_key(plan, extent.buffer, extent.base);
  const auto check_length = [&](std::int64_t other, const char* what) {
    if (other != length && other != any_length)
      refuse(lane, Violation::length,
             fmt::format("{} has the length of chunk {}, the step that of chunk {}", what, other, length));
  };

  if (races_) {
    for (const std::int32_t c : step.drain) {
      const std::int32_t w = wire_of(plan, c);
      const WireState& wire = wires_[static_cast<std::size_t>(w)];
      clocks_.join(state.clock, wire.released_clock, network_.wires[static_cast<std::size_t>(w)].receiving_lane,
                   wire.released_tick);
    }
    for (const After& after : step.after) {
      if (state.tile < after.lag) continue;
      const std::int32_t other = network_.lane_base[static_cast<std::size_t>(plan.rank)] + after.lane;
      const auto at = static_cast<std::size_t>(
          (state.tile - after.lag) * network_.lanes[static_cast<std::size_t>(other)].steps + after.step);
      const Moment& moment = moments_[static_cast<std::size_t>(other)][at];
      clocks_.join(state.clock, moment.clock, other, moment.tick);
    }
  }

  // All operands in order; a step takes them all before it writes.
  Value result[modes];
  bool ordered = static_cast<std::int32_t>(step.operands.size()) == plan.size;
  std::size_t only_local = 0;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const Operand& operand = step.operands[i];
    const Value* values[modes];
    if (operand.kind == Operand::Kind::local) {
      const ChunkRef ref = resolve(operand.chunk);
      check_length(length_key(plan, ref.buffer, ref.base), "an operand");
      for (std::size_t mode = 0; mode < modes; ++mode) {
        only_local = cell(plan, ref.buffer, ref.base, state.tile, static_cast<Mode>(mode));
        values[mode] = &memory_[mode][only_local];
        if (!values[mode]->defined)
          refuse(
              lane, Violation::undefined,
              fmt::format("reads {} chunk {}, which nothing has been written to", buffer_name(ref.buffer), ref.base));
      }
    } else {
      const std::int32_t id = take_message(lane, wire_of(plan, operand.connection));
      const Message& message = messages_[static_cast<std::size_t>(id)];
      check_length(message.length, "a received message");
      for (std::size_t mode = 0; mode < modes; ++mode) values[mode] = &message.value[mode];
    }
    for (std::size_t mode = 0; mode < modes; ++mode) {
      const Value& v = *values[mode];
      ordered = ordered && v.raw == static_cast<std::int32_t>(i);
      if (i == 0) {
        result[mode] = v;
        continue;
      }
      Contribution twice;
      if (!unite(result[mode], v, twice))
        refuse(lane, Violation::double_count,
               fmt::format("operand {} brings chunk {} of rank {} again", i, twice.chunk, twice.origin));
      result[mode].finishes = static_cast<std::uint8_t>(std::min(255, result[mode].finishes + v.finishes));
      result[mode].raw = none;
      result[mode].ordered = false;
    }
  }
  if (ordered)
    for (Value& v : result) v.ordered = true;
  if (step.finish) {
    check_finish(lane, result, length, state.tile);
    for (Value& v : result) v.finishes = static_cast<std::uint8_t>(std::min(255, v.finishes + 1));
  }

  if (races_) {
    for (const Operand& operand : step.operands) {
      if (operand.kind != Operand::Kind::local) continue;
      const ChunkRef ref = resolve(operand.chunk);
      read(lane, cell(plan, ref.buffer, ref.base, state.tile, in_place), ref);
    }
  }
  bool addressed = step.operands.size() == 1 && step.operands[0].kind == Operand::Kind::local;
  std::size_t address = only_local;  // in place, the last mode
  if (step.destination) {
    const ChunkRef ref = resolve(*step.destination);
    check_length(length_key(plan, ref.buffer, ref.base), "the destination");
    for (const Mode mode : {out_of_place, in_place}) {
      address = cell(plan, ref.buffer, ref.base, state.tile, mode);
      memory_[mode][address] = result[mode];
    }
    addressed = true;
    if (races_) write(lane, address, ref);
  }
  for (const Send& s : step.sends) {
    const std::int32_t w = wire_of(plan, s.connection);
    const Wire& wire = network_.wires[static_cast<std::size_t>(w)];
    const bool refers = races_ && wire.direct && addressed;
    send(lane, w, result, length, refers ? add_access(address, wire.receiving_lane, 0) : none);
  }
  // The slots go back once the step is done.
  if (races_)
    for (const Operand& operand : step.operands) {
      if (operand.kind == Operand::Kind::local) continue;
      const std::int32_t w = wire_of(plan, operand.connection);
      if (!network_.wires[static_cast<std::size_t>(w)].drained) continue;
      WireState& wire = wires_[static_cast<std::size_t>(w)];
      clocks_.hold(state.clock);
      if (wire.released_tick > 0) clocks_.drop(wire.released_clock);
      wire.released_clock = state.clock;
      wire.released_tick = state.tick + 1;
    }
}

template <class Value>
void Execution<Value>::advance(std::int32_t lane, const Lane& code) {
  LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  ++state.tick;
  if (races_ && network_.lanes[static_cast<std::size_t>(lane)].awaited) {
    clocks_.hold(state.clock);
    moments_[static_cast<std::size_t>(lane)].push_back({state.clock, state.tick});
  }
  for (const std::int32_t waiter : state.waiters) make_ready(waiter);
  state.waiters.clear();
  if (tile_order_ == TileOrder::by_length) {
    if (state.position + 1 < order_[static_cast<std::size_t>(lane)].size()) return go_to(lane, state.position + 1);
    if (++state.tile == tiles_) state.finished = true;
    else go_to(lane, 0);
    return;
  }
  ++state.step_of_tile;
  if (++state.step < code.blocks[state.block].steps.size()) return;
  state.step = 0;
  if (++state.turn < code.blocks[state.block].count) return;
  state.turn = 0;
  while (++state.block < code.blocks.size())
    if (!code.blocks[state.block].steps.empty()) return;
  state.block = 0;
  state.step_of_tile = 0;
  if (++state.tile == tiles_) state.finished = true;
  else
    while (code.blocks[state.block].steps.empty()) ++state.block;
}

template <class Value>
CheckResult Execution<Value>::run() {
  try {
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      LaneState& state = lanes_[l];
      if (state.finished) continue;
      const Lane& code = plan_of(static_cast<std::int32_t>(l)).lanes[static_cast<std::size_t>(network_.lanes[l].lane)];
      while (code.blocks[state.block].steps.empty()) ++state.block;
      if (tile_order_ == TileOrder::by_length) go_to(static_cast<std::int32_t>(l), 0);
      make_ready(static_cast<std::int32_t>(l));
    }
    while (!ready_.empty()) {
      const std::int32_t lane = ready_.front();
      ready_.pop_front();
      LaneState& state = lanes_[static_cast<std::size_t>(lane)];
      state.queued = false;
      const RankPlan& plan = plan_of(lane);
      const Lane& code = plan.lanes[static_cast<std::size_t>(network_.lanes[static_cast<std::size_t>(lane)].lane)];
      while (!state.finished) {
        const Step& step = code.blocks[state.block].steps[state.step];
        if (!conditions_hold(lane, plan, step)) break;
        fire(lane, plan, step);
        advance(lane, code);
      }
    }
    for (const LaneState& state : lanes_)
      if (!state.finished) return deadlock();
    return judge_outputs();
  } catch (const Violated& violated) {
    return violated.result;
  }
}

// Follows who waits for whom from the first blocked lane until a lane comes up again: that is the cycle.
template <class Value>
CheckResult Execution<Value>::deadlock() const {
  std::int32_t lane = 0;
  while (lanes_[static_cast<std::size_t>(lane)].finished) ++lane;
  std::vector<bool> seen(lanes_.size(), false);
  const auto waits_for = [&](std::int32_t l) {
    const LaneState& state = lanes_[static_cast<std::size_t>(l)];
    if (state.blocked_lane != none) return state.blocked_lane;
    const Wire& wire = network_.wires[static_cast<std::size_t>(state.blocked_wire)];
    return wire.sending_lane == l ? wire.receiving_lane : wire.sending_lane;
  };
  while (!seen[static_cast<std::size_t>(lane)] && !lanes_[static_cast<std::size_t>(lane)].finished) {
    seen[static_cast<std::size_t>(lane)] = true;
    lane = waits_for(lane);
  }
  std::string cycle;
  std::int32_t at = lane;
  for (int shown = 0; shown < 4; ++shown) {
    const LaneState& state = lanes_[static_cast<std::size_t>(at)];
    if (state.finished) break;
    const LaneOfRank& who = network_.lanes[static_cast<std::size_t>(at)];
    std::string why;
    if (state.blocked_lane != none) {
      why = fmt::format("waits for lane {}", network_.lanes[static_cast<std::size_t>(state.blocked_lane)].lane);
    } else {
      const Wire& wire = network_.wires[static_cast<std::size_t>(state.blocked_wire)];
      why = wire.sending_lane == at ? fmt::format("waits for one of {} slots to rank {}", wire.slots, wire.destination)
                                    : fmt::format("waits for a message of rank {}", wire.source);
    }
    cycle += fmt::format("{}rank {}, lane {}, step {} {}", cycle.empty() ? "" : "; ", who.rank, who.lane,
                         state.step_of_tile, why);
    at = waits_for(at);
    if (at == lane) break;
  }
  const LaneOfRank& who = network_.lanes[static_cast<std::size_t>(lane)];
  return violation_at(plan_of(lane), Violation::deadlock, who.lane, lanes_[static_cast<std::size_t>(lane)].step_of_tile,
                      cycle);
}

// The full reduction that output chunk `chunk` of this rank must be.
template <class Value>
Value Execution<Value>::complete(const RankPlan& plan, std::int32_t chunk, std::int32_t tile) const {
  const std::int64_t of = plan.collective == Collective::barrier ? 0 : length_key(plan, Buffer::output, chunk);
  return complete_[static_cast<std::size_t>(tile) * static_cast<std::size_t>(plans_.front().chunks[0]) +
                   static_cast<std::size_t>(of)];
}

template <class Value>
Value Execution<Value>::promised(const RankPlan& plan, std::int32_t chunk, std::int32_t tile) const {
  switch (plan.collective) {
    case Collective::all_gather:
    case Collective::gather: return Value::of({tile, chunk, 0});
    case Collective::broadcast: return Value::of({tile, plan.root, chunk});
    case Collective::all_to_all: return Value::of({tile, chunk, plan.rank});
    case Collective::scatter: return Value::of({tile, plan.root, plan.rank});
    default: return complete(plan, chunk, tile);
  }
}

template <class Value>
std::string Execution<Value>::describe(const Value& value, const Value& wanted) const {
  if constexpr (!Value::exact) {
    return {};
  } else {
    std::vector<Contribution> missing, extra;
    std::set_difference(wanted.set->begin(), wanted.set->end(), value.set->begin(), value.set->end(),
                        std::back_inserter(missing));
    std::set_difference(value.set->begin(), value.set->end(), wanted.set->begin(), wanted.set->end(),
                        std::back_inserter(extra));
    std::string text;
    if (!missing.empty())
      text += fmt::format("{} contributions are missing, the first is chunk {} of rank {}", missing.size(),
                          missing[0].chunk, missing[0].origin);
    if (!extra.empty())
      text += fmt::format("{}{} don't belong, the first is chunk {} of rank {}{}", text.empty() ? "" : "; ",
                          extra.size(), extra[0].chunk, extra[0].origin,
                          extra[0].tile != wanted.set->front().tile ? " from another tile" : "");
    return text;
  }
}

template <class Value>
CheckResult Execution<Value>::judge_outputs() {
  CheckResult result;
  result.rank_ordered = true;
  for (const RankPlan& plan : plans_)
    for (std::int32_t t = 0; t < tiles_; ++t)
      for (std::int32_t c = 0; c < plan.chunks[1]; ++c)
        for (const Mode mode : {out_of_place, in_place}) {
          const Value& got = memory_[mode][cell(plan, Buffer::output, c, t, mode)];
          const Value wanted = promised(plan, c, t);
          const auto refuse_output = [&](Violation violation, const std::string& what) {
            return violation_at(plan, violation, -1, -1,
                                fmt::format("output chunk {}{} {}", c, mode == in_place ? ", in place," : "", what));
          };
          if (!got.defined) return refuse_output(Violation::wrong_result, "is never written");
          if (got.hash != wanted.hash)
            return refuse_output(Violation::wrong_result, "is wrong; " + describe(got, wanted));
          if (plan.collective == Collective::barrier) continue;
          if (got.finishes != (reduces_ ? 1 : 0))
            return refuse_output(Violation::finish,
                                 fmt::format("was finished {} times; {} is right", got.finishes, reduces_ ? 1 : 0));
          result.rank_ordered = result.rank_ordered && (!reduces_ || got.ordered);
        }
  return result;
}

template class Execution<HashValue>;
template class Execution<ExactValue>;

}  // namespace rondo::plan
