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

void Execution::prepare(std::span<BoundPlan* const> channels, ConnectionSource& source, const Call& call) {
  channels_ = channels;
  source_ = &source;
  call_ = call;
  channel_grain_ = std::max<std::size_t>(1, 64 / call.element);
  lanes_.clear();
  has_pumps_ = false;
  std::size_t most_operands = 1;
  std::size_t most_sends = 0;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    BoundPlan& bound = *channels[c];
    std::size_t longest = 0;
    for (int b = 0; b < 2; ++b)
      if (bound.plan.chunks[b] > 0 && call.tables[b] != nullptr) longest = std::max(longest, call.tables[b]->longest());
    const auto tiles = static_cast<std::uint32_t>(std::max<std::size_t>(1, (longest + call.tile - 1) / call.tile));
    for (std::size_t l = 0; l < bound.plan.lanes.size(); ++l) {
      LaneState lane;
      lane.bound = &bound;
      lane.lane = &bound.plan.lanes[l];
      lane.channel = static_cast<std::int32_t>(c);
      lane.index = static_cast<std::int32_t>(l);
      lane.tiles = tiles;
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
  sources_.resize(most_operands);
  scaled_.resize(most_operands);
  destinations_.resize(most_sends + 1);
}

void Execution::start(const std::byte* input, std::byte* output, double factor, std::uint32_t signature) {
  call_.input = input;
  call_.output = output;
  call_.factor = factor;
  call_.signature = signature;
  for (LaneState& lane : lanes_) {
    lane.tile = 0;
    lane.block = 0;
    lane.j = 0;
    lane.step = 0;
    lane.slice = 0;
    lane.unrolled = 0;
    lane.ended = false;
    lane.steps_ended = lane.lane->blocks.empty();
  }
  lanes_left_ = lanes_.size();
}

bool Execution::advance() {
  bool moved = false;
  for (LaneState& lane : lanes_)
    if (!lane.ended && advance_lane(lane)) moved = true;
  return moved;
}

bool Execution::advance_lane(LaneState& lane) {
  bool moved = false;
  for (int fired = 0; fired < slices_a_visit;) {
    if (lane.steps_ended) return finish_lane(lane) || moved;
    const plan::Step& step = lane.lane->blocks[lane.block].steps[lane.step];
    Piece piece;
    if (!piece_of(lane, step, piece)) {  // the step's chunk has no such tile
      next_step(lane);
      continue;
    }
    if (!fire(lane, step, piece)) return moved;
    moved = true;
    ++fired;
    if (piece.last) {
      lane.slice = 0;
      next_step(lane);
    } else {
      ++lane.slice;
    }
  }
  return moved;
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

std::size_t Execution::chunk_length(const LaneState& lane, const plan::ChunkRef& ref, std::size_t& share_offset) const {
  const std::size_t whole = call_.tables[static_cast<int>(ref.buffer)]->length(lane.bound->plan.chunk_at(ref, lane.j));
  share_offset = 0;
  if (channels_.size() == 1) return whole;
  const std::size_t channels = channels_.size();
  const std::size_t share = ((whole + channels - 1) / channels + channel_grain_ - 1) / channel_grain_ * channel_grain_;
  share_offset = std::min(whole, share * static_cast<std::size_t>(lane.channel));
  return std::min(share, whole - share_offset);
}

bool Execution::piece_of(const LaneState& lane, const plan::Step& step, Piece& piece) const {
  std::size_t share_offset = 0;
  const std::size_t length = chunk_length(lane, step.extent, share_offset);
  const std::size_t tile_offset = lane.tile * call_.tile;
  if (lane.tile > 0 && tile_offset >= length) return false;
  const std::size_t tile_length = std::min(call_.tile, length - tile_offset);
  const std::size_t slice_offset = lane.slice * call_.slice;
  piece.offset = share_offset + tile_offset + slice_offset;
  piece.length = std::min(call_.slice, tile_length - slice_offset);
  piece.last = slice_offset + piece.length >= tile_length;
  return true;
}

std::byte* Execution::address(const LaneState& lane, const plan::ChunkRef& ref, const Piece& piece) const {
  const std::int32_t chunk = lane.bound->plan.chunk_at(ref, lane.j);
  if (ref.buffer == plan::Buffer::scratch) {
    const auto tiles = static_cast<std::size_t>(lane.bound->plan.scratch_tiles);
    const std::size_t tile = static_cast<std::size_t>(chunk) * tiles + lane.tile % tiles;
    return lane.bound->scratch.data() + (tile * call_.tile + lane.slice * call_.slice) * call_.element;
  }
  // Plans never write to the input; one pointer type serves both.
  std::byte* base = ref.buffer == plan::Buffer::input ? const_cast<std::byte*>(call_.input) : call_.output;
  return base + (call_.tables[static_cast<int>(ref.buffer)]->offset(chunk) + piece.offset) * call_.element;
}

bool Execution::may_fire(const LaneState& lane, const plan::Step& step, std::size_t bytes) {
  auto& connections = lane.bound->connections;
  for (const plan::Operand& operand : step.operands) {
    if (operand.kind != plan::Operand::Kind::receive) continue;
    BoundConnection& connection = connections[static_cast<std::size_t>(operand.connection)];
    if (connection.receive == nullptr) [[unlikely]] {
      connection.receive = source_->try_open_receive(connection.peer, connection.tag);
      if (connection.receive == nullptr) return false;
      if (connection.receive->pump != nullptr) {
        has_pumps_ = true;
        // This look may be the last before a sleep, which has armed and pumped already: what came before has rung.
        connection.receive->pump->arm();
        connection.receive->pump->progress();
      }
    }
    const transport::SlotLine* line = connection.receive->try_peek();
    if (line == nullptr) return false;
    if (line->signature != call_.signature || transport::ReceiveEnd::length(*line) != bytes) [[unlikely]]
      throw ForeignMessage{connection.peer, call_.signature, line->signature, bytes,
                           transport::ReceiveEnd::length(*line)};
  }
  for (const plan::Send& send : step.sends)
    if (!connections[static_cast<std::size_t>(send.connection)].send->try_acquire()) return false;
  for (const std::int32_t drain : step.drain)
    if (!connections[static_cast<std::size_t>(drain)].send->drained()) return false;
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

bool Execution::fire(LaneState& lane, const plan::Step& step, const Piece& piece) {
  const std::size_t bytes = piece.length * call_.element;
  if (!may_fire(lane, step, bytes)) return false;
  auto& connections = lane.bound->connections;

  bool any_scaled = false;
  std::size_t source_count = 0;
  for (const plan::Operand& operand : step.operands) {
    bool raw = false;
    if (operand.kind == plan::Operand::Kind::receive) {
      sources_[source_count] = message_address(connections[static_cast<std::size_t>(operand.connection)], bytes);
    } else {
      sources_[source_count] = address(lane, operand.chunk, piece);
      raw = call_.scaled && operand.chunk.buffer == plan::Buffer::input;
    }
    scaled_[source_count++] = raw ? 1 : 0;
    any_scaled = any_scaled || raw;
  }
  const std::uint32_t divisor = step.finish ? call_.divisor : 1;
  const bool computes = source_count > 1 || any_scaled || divisor != 1;

  std::size_t destination_count = 0;
  std::byte* destination = nullptr;
  if (step.destination) {
    destination = address(lane, *step.destination, piece);
    // In place, a copy onto itself is no work.
    if (computes || destination != sources_[0]) destinations_[destination_count++] = destination;
  }
  const bool stream = call_.stream_output && destination_count > 0 && step.destination->buffer == plan::Buffer::output;
  const bool inlined = bytes <= transport::inline_bytes;
  // A reference is to memory that holds the value when the peer reads it: the destination, or a lone plain operand.
  const std::byte* stable = destination != nullptr ? destination
                            : !computes && step.operands[0].kind == plan::Operand::Kind::local
                                ? static_cast<const std::byte*>(sources_[0])
                                : nullptr;
  for (const plan::Send& send : step.sends) {
    BoundConnection& connection = connections[static_cast<std::size_t>(send.connection)];
    transport::SendEnd& end = *connection.send;
    transport::SlotLine& line = end.line();
    transport::WindowReference where{};
    if (inlined) {
      destinations_[destination_count++] = line.payload;
    } else if (connection.direct && stable != nullptr && end.maps_windows && bytes >= smallest_reference &&
               source_->find_window(stable, bytes, where)) {
      std::memcpy(line.payload, &where, sizeof where);
      connection.referenced = true;
      line.length_and_kind = static_cast<std::uint32_t>(transport::PayloadKind::reference);  // remembered for publish
      continue;
    } else {
      destinations_[destination_count++] = end.slot();
    }
    line.length_and_kind =
        static_cast<std::uint32_t>(inlined ? transport::PayloadKind::inlined : transport::PayloadKind::slot);
  }
  if (bytes > 0 && destination_count > 0) {
    if (computes) {
      ReduceArguments arguments;
      arguments.sources = sources_.data();
      arguments.source_count = source_count;
      arguments.destinations = destinations_.data();
      arguments.destination_count = destination_count;
      arguments.count = piece.length;
      arguments.scaled = any_scaled ? scaled_.data() : nullptr;
      arguments.factor = call_.factor;
      arguments.divisor = divisor;
      arguments.stream_first_destination = stream;
      call_.kernel(arguments);
    } else if (destination_count == 1 && bytes <= 16) {
      std::memcpy(destinations_[0], sources_[0], bytes);
    } else {
      copy(sources_[0], destinations_.data(), destination_count, bytes, stream);
    }
  }
  for (const plan::Send& send : step.sends) {
    transport::SendEnd& end = *connections[static_cast<std::size_t>(send.connection)].send;
    end.publish(call_.signature, bytes, static_cast<transport::PayloadKind>(end.line().length_and_kind));
    if (send.flush) end.flush();
  }
  for (const plan::Operand& operand : step.operands) {
    if (operand.kind != plan::Operand::Kind::receive) continue;
    transport::ReceiveEnd& end = *connections[static_cast<std::size_t>(operand.connection)].receive;
    end.release();
    end.flush();
  }
  return true;
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
    for (const plan::Operand& operand : lane.lane->blocks[lane.block].steps[lane.step].operands) {
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
