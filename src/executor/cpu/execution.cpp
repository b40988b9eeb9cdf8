#include "executor/cpu/execution.hpp"

#include <fmt/format.h>

#include <cstring>

namespace rondo::executor {
namespace {

// A reference saves a copy but costs the receiver a far read and the sender a wait for the credit; below this it loses.
constexpr std::size_t smallest_reference = 4096;
// Slices one lane may fire before the next lane gets its turn.
constexpr int slices_a_visit = 8;

}  // namespace

void Execution::prepare(std::span<BoundPlan* const> channels, ConnectionSource& source, const Call& call,
                        const Script& script) {
  channels_ = channels;
  source_ = &source;
  call_ = call;
  lanes_.clear();
  has_pumps_ = false;
  std::size_t most_operands = 1;
  std::size_t most_sends = 0;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    BoundPlan& bound = *channels[c];
    const std::size_t longest = longest_share(call, bound.plan, channels.size());
    const auto tiles = static_cast<std::uint32_t>(std::max<std::size_t>(1, (longest + call.tile - 1) / call.tile));
    for (std::size_t l = 0; l < bound.plan.lanes.size(); ++l) {
      LaneState lane;
      lane.bound = &bound;
      lane.lane = &bound.plan.lanes[l];
      lane.channel = static_cast<std::int32_t>(c);
      lane.index = static_cast<std::int32_t>(l);
      lane.tiles = tiles;
      lane.scripted = !script.empty();
      if (lane.scripted) lane.script = script.lane(lanes_.size());
      lanes_.push_back(lane);
      for (const plan::Block& block : lane.lane->blocks)
        for (const plan::Step& step : block.steps) {
          most_operands = std::max(most_operands, step.operands.size());
          most_sends = std::max(most_sends, step.sends.size());
        }
    }
    for (BoundConnection& connection : bound.connections) {
      connection.referenced = false;
      has_pumps_ = has_pumps_ || (connection.send != nullptr && connection.send->pump != nullptr) ||
                   (connection.receive != nullptr && connection.receive->pump != nullptr);
    }
    if (const std::int32_t scratch_chunks = bound.plan.chunks[2]; scratch_chunks > 0) {
      const std::size_t bytes =
          static_cast<std::size_t>(scratch_chunks * bound.plan.scratch_tiles) * call.tile * call.element;
      if (bound.scratch.size() < bytes) bound.scratch.resize(bytes);
    }
  }
  if (script.empty()) {
    current_sources_.resize(lanes_.size() * most_operands);
    current_sends_.resize(lanes_.size() * most_sends);
  }
  sources_.resize(most_operands);
  scaled_.resize(most_operands);
  destinations_.resize(most_sends + 1);
}

void Execution::start(const std::byte* input, std::byte* output, double factor, std::uint32_t signature) {
  call_.factor = factor;
  call_.signature = signature;
  for (LaneState& lane : lanes_) {
    // Plans never write to the input; one pointer type serves all.
    lane.buffers[static_cast<int>(plan::Buffer::input)] = const_cast<std::byte*>(input);
    lane.buffers[static_cast<int>(plan::Buffer::output)] = output;
    lane.buffers[static_cast<int>(plan::Buffer::scratch)] = lane.bound->scratch.data();
    lane.tile = 0;
    lane.block = 0;
    lane.j = 0;
    lane.step = 0;
    lane.slice = 0;
    lane.unrolled = 0;
    lane.resolved = false;
    lane.ended = false;
    lane.steps_ended = lane.scripted ? lane.script.empty() : lane.lane->blocks.empty();
  }
  lanes_left_ = lanes_.size();
}

bool Execution::advance() {
  bool moved = false;
  for (LaneState& lane : lanes_)
    if (!lane.ended && (lane.scripted ? advance_scripted(lane) : advance_lane(lane))) moved = true;
  return moved;
}

bool Execution::advance_scripted(LaneState& lane) {
  bool moved = false;
  while (!lane.steps_ended) {
    if (!fire(lane, lane.script[static_cast<std::size_t>(lane.unrolled)])) return moved;
    moved = true;
    lane.steps_ended = static_cast<std::size_t>(++lane.unrolled) == lane.script.size();
  }
  return finish_lane(lane) || moved;
}

bool Execution::advance_lane(LaneState& lane) {
  bool moved = false;
  for (int fired = 0; fired < slices_a_visit;) {
    if (lane.steps_ended) return finish_lane(lane) || moved;
    if (!lane.resolved && !resolve_next(lane)) {  // the step's chunk has no such tile
      next_step(lane);
      continue;
    }
    if (!fire(lane, lane.current)) return moved;
    lane.resolved = false;
    moved = true;
    ++fired;
    if (lane.current.last) {
      lane.slice = 0;
      next_step(lane);
    } else {
      ++lane.slice;
    }
  }
  return moved;
}

bool Execution::resolve_next(LaneState& lane) {
  const std::size_t operands = current_sources_.size() / lanes_.size();
  const std::size_t sends = current_sends_.size() / lanes_.size();
  const auto l = static_cast<std::size_t>(&lane - lanes_.data());
  lane.current.sources = std::span(current_sources_).subspan(l * operands, operands);
  lane.current.sends = std::span(current_sends_).subspan(l * sends, sends);
  const Place place{static_cast<std::size_t>(lane.channel), channels_.size(), lane.tile, lane.j, lane.slice};
  lane.resolved = resolve(call_, *lane.bound, lane.lane->blocks[lane.block].steps[lane.step], place, lane.current);
  return lane.resolved;
}

void Execution::next_step(LaneState& lane) {
  ++lane.unrolled;
  const auto& blocks = lane.lane->blocks;
  if (++lane.step < blocks[lane.block].steps.size()) return;
  lane.step = 0;
  if (++lane.j < blocks[lane.block].count) return;
  lane.j = 0;
  do {
    if (++lane.block == blocks.size()) {
      lane.block = 0;
      if (++lane.tile == lane.tiles) {
        lane.steps_ended = true;
        return;
      }
      lane.unrolled = 0;
    }
  } while (blocks[lane.block].count <= 0 || blocks[lane.block].steps.empty());
}

bool Execution::finish_lane(LaneState& lane) {
  for (std::size_t i = 0; i < lane.bound->connections.size(); ++i) {
    BoundConnection& connection = lane.bound->connections[i];
    if (connection.referenced && lane.bound->plan.connections[i].lane == lane.index) {
      if (!connection.send->drained()) return false;
      connection.referenced = false;
    }
  }
  lane.ended = true;
  --lanes_left_;
  return true;
}

bool Execution::open_receive(BoundConnection& connection) {
  connection.receive = source_->try_open_receive(connection.peer, connection.tag);
  if (connection.receive == nullptr) return false;
  if (connection.receive->pump != nullptr) {
    has_pumps_ = true;
    // This look may be the last before a sleep, which has armed and pumped already: what came before has rung.
    connection.receive->pump->arm();
    connection.receive->pump->progress();
  }
  return true;
}

bool Execution::may_fire_after(const LaneState& lane, const plan::Step& step) {
  for (const std::int32_t drain : step.drain)
    if (!lane.bound->connections[static_cast<std::size_t>(drain)].send->drained()) return false;
  for (const plan::After& after : step.after) {
    const auto tile = static_cast<std::int64_t>(lane.tile) - after.lag;
    if (tile < 0) continue;
    for (const LaneState& other : lanes_) {
      if (other.bound != lane.bound || other.index != after.lane || other.steps_ended) continue;
      if (other.tile < tile || (other.tile == tile && other.unrolled <= after.step)) return false;
    }
  }
  return true;
}

bool Execution::may_fire(const LaneState& lane, const Firing& firing) {
  for (const Firing::Source& source : firing.sources) {
    if (source.connection == nullptr) continue;
    BoundConnection& connection = *source.connection;
    if (connection.receive == nullptr && !open_receive(connection)) [[unlikely]]
      return false;
    const transport::SlotLine* line = connection.receive->try_peek();
    if (line == nullptr) return false;
    if (line->signature != call_.signature || transport::ReceiveEnd::length(*line) != firing.bytes) [[unlikely]]
      throw ForeignMessage{connection.peer, call_.signature, line->signature, firing.bytes,
                           transport::ReceiveEnd::length(*line)};
  }
  for (const Firing::Send& send : firing.sends)
    if (!send.connection->send->try_acquire()) return false;
  return !firing.waits || may_fire_after(lane, *firing.step);
}

const std::byte* Execution::message_address(BoundConnection& connection, std::size_t bytes) {
  const transport::SlotLine& line = *connection.receive->try_peek();
  switch (transport::ReceiveEnd::kind(line)) {
    case transport::PayloadKind::inlined: return line.payload;
    case transport::PayloadKind::slot: return connection.receive->slot();
    case transport::PayloadKind::reference:
      return source_->peer_window(connection.peer, transport::ReceiveEnd::reference(line), bytes);
  }
  return line.payload;
}

bool Execution::fire(LaneState& lane, const Firing& firing) {
  if (!may_fire(lane, firing)) return false;
  const std::size_t bytes = firing.bytes;
  for (std::size_t i = 0; i < firing.sources.size(); ++i) {
    const Firing::Source& source = firing.sources[i];
    sources_[i] = source.connection != nullptr ? message_address(*source.connection, bytes)
                                               : lane.buffers[static_cast<int>(source.buffer)] + source.offset;
  }

  std::size_t destination_count = 0;
  std::byte* destination = nullptr;
  if (firing.stores) {
    destination = lane.buffers[static_cast<int>(firing.destination)] + firing.destination_offset;
    // In place, a copy onto itself is no work.
    if (firing.computes || destination != sources_[0]) destinations_[destination_count++] = destination;
  }
  const bool inlined = bytes <= transport::inline_bytes;
  // A reference is to memory that holds the value when the peer reads it: the destination, or a lone plain operand.
  const std::byte* stable = destination != nullptr ? destination
                            : !firing.computes && firing.sources[0].connection == nullptr
                                ? static_cast<const std::byte*>(sources_[0])
                                : nullptr;
  for (const Firing::Send& send : firing.sends) {
    BoundConnection& connection = *send.connection;
    transport::SendEnd& end = *connection.send;
    transport::SlotLine& line = end.line();
    transport::WindowReference where{};
    if (inlined) {
      destinations_[destination_count++] = line.payload;
    } else if (connection.direct && stable != nullptr && end.maps_windows && bytes >= smallest_reference &&
               source_->find_window(stable, bytes, where)) {
      std::memcpy(line.payload, &where, sizeof where);
      connection.referenced = true;
      end.pending = transport::PayloadKind::reference;
      continue;
    } else {
      destinations_[destination_count++] = end.slot();
    }
    end.pending = inlined ? transport::PayloadKind::inlined : transport::PayloadKind::slot;
  }
  if (bytes > 0 && destination_count > 0) move(firing, destination_count);
  for (const Firing::Send& send : firing.sends) {
    transport::SendEnd& end = *send.connection->send;
    end.publish(call_.signature, bytes, end.pending);
    if (send.flush) end.flush();
  }
  for (const Firing::Source& source : firing.sources) {
    if (source.connection == nullptr) continue;
    transport::ReceiveEnd& end = *source.connection->receive;
    end.release();
    end.flush();
  }
  return true;
}

// From sources_ to destinations_.
void Execution::move(const Firing& firing, std::size_t destination_count) {
  if (firing.computes) {
    if (firing.scales)
      for (std::size_t i = 0; i < firing.sources.size(); ++i) scaled_[i] = firing.sources[i].scaled ? 1 : 0;
    ReduceArguments arguments;
    arguments.sources = sources_.data();
    arguments.source_count = firing.sources.size();
    arguments.destinations = destinations_.data();
    arguments.destination_count = destination_count;
    arguments.count = firing.count;
    arguments.scaled = firing.scales ? scaled_.data() : nullptr;
    arguments.factor = call_.factor;
    arguments.divisor = firing.divisor;
    arguments.stream_first_destination = firing.stream;
    call_.kernel(arguments);
  } else if (destination_count == 1 && firing.bytes <= transport::inline_bytes) {
    std::memcpy(destinations_[0], sources_[0], firing.bytes);
  } else {
    copy(sources_[0], destinations_.data(), destination_count, firing.bytes, firing.stream);
  }
}

void Execution::pump() {
  if (!has_pumps_) return;
  for (BoundPlan* bound : channels_)
    for (BoundConnection& connection : bound->connections) {
      if (connection.send != nullptr && connection.send->pump != nullptr) connection.send->pump->progress();
      if (connection.receive != nullptr && connection.receive->pump != nullptr) connection.receive->pump->progress();
    }
}

void Execution::arm() {
  if (!has_pumps_) return;
  for (BoundPlan* bound : channels_)
    for (BoundConnection& connection : bound->connections) {
      if (connection.send != nullptr && connection.send->pump != nullptr) connection.send->pump->arm();
      if (connection.receive != nullptr && connection.receive->pump != nullptr) connection.receive->pump->arm();
    }
}

std::string Execution::progress() const {
  for (const LaneState& lane : lanes_) {
    if (lane.ended) continue;
    if (lane.steps_ended)
      return fmt::format("lane {} of {}: waiting until its window references have been read", lane.index,
                         lanes_.size());
    std::string waits;
    const plan::Step& step = lane.scripted ? *lane.script[static_cast<std::size_t>(lane.unrolled)].step
                                           : lane.lane->blocks[lane.block].steps[lane.step];
    for (const plan::Operand& operand : step.operands) {
      if (operand.kind != plan::Operand::Kind::receive) continue;
      const BoundConnection& connection = lane.bound->connections[static_cast<std::size_t>(operand.connection)];
      if (connection.receive == nullptr || connection.receive->try_peek() == nullptr)
        waits += fmt::format("{}rank {}", waits.empty() ? ", waiting for " : ", ", connection.peer);
    }
    return fmt::format("lane {} of {}, tile {} of {}, step {}{}", lane.index, lanes_.size(), lane.tile, lane.tiles,
                       lane.unrolled, waits);
  }
  return "all lanes ended";
}

}  // namespace rondo::executor
