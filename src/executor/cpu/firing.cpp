#include "executor/cpu/firing.hpp"

#include <algorithm>

namespace rondo::executor {
namespace {

constexpr std::size_t most_scripted = 512;  // firings; beyond, resolving them is no part of the time that matters

std::size_t share_of(const Call& call, std::size_t whole, std::size_t channels) {
  if (channels == 1) return whole;
  const std::size_t grain = grain_of(call.element);
  return ((whole + channels - 1) / channels + grain - 1) / grain * grain;
}

std::size_t chunk_offset(const Call& call, const BoundPlan& bound, const plan::ChunkRef& ref, const Place& place,
                         std::size_t offset) {
  const std::int32_t chunk = bound.plan.chunk_at(ref, place.j);
  if (ref.buffer == plan::Buffer::scratch) {
    const auto tiles = static_cast<std::size_t>(bound.plan.scratch_tiles);
    const std::size_t tile = static_cast<std::size_t>(chunk) * tiles + place.tile % tiles;
    return (tile * call.tile + place.slice * call.slice) * call.element;
  }
  return (call.tables[static_cast<int>(ref.buffer)]->offset(chunk) + offset) * call.element;
}

}  // namespace

std::size_t longest_share(const Call& call, const plan::RankPlan& plan, std::size_t channels) {
  std::size_t longest = 0;
  for (int b = 0; b < 2; ++b)
    if (plan.chunks[b] > 0 && call.tables[b] != nullptr) longest = std::max(longest, call.tables[b]->longest());
  return share_of(call, longest, channels);
}

bool resolve(const Call& call, BoundPlan& bound, const plan::Step& step, const Place& place, Firing& firing) {
  const std::size_t whole =
      call.tables[static_cast<int>(step.extent.buffer)]->length(bound.plan.chunk_at(step.extent, place.j));
  const std::size_t share = share_of(call, whole, place.channels);
  const std::size_t share_offset = std::min(whole, share * place.channel);
  const std::size_t length = std::min(share, whole - share_offset);
  const std::size_t tile_offset = place.tile * call.tile;
  if (place.tile > 0 && tile_offset >= length) return false;
  const std::size_t tile_length = std::min(call.tile, length - tile_offset);
  const std::size_t slice_offset = place.slice * call.slice;
  const std::size_t offset = share_offset + tile_offset + slice_offset;

  firing.step = &step;
  firing.count = std::min(call.slice, tile_length - slice_offset);
  firing.bytes = firing.count * call.element;
  firing.last = slice_offset + firing.count >= tile_length;
  firing.sources = firing.sources.first(step.operands.size());
  firing.scales = false;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const plan::Operand& operand = step.operands[i];
    Firing::Source& source = firing.sources[i];
    source = {};
    if (operand.kind == plan::Operand::Kind::receive) {
      source.connection = &bound.connections[static_cast<std::size_t>(operand.connection)];
      continue;
    }
    source.buffer = operand.chunk.buffer;
    source.offset = chunk_offset(call, bound, operand.chunk, place, offset);
    source.scaled = call.scaled && source.buffer == plan::Buffer::input;
    firing.scales = firing.scales || source.scaled;
  }
  firing.sends = firing.sends.first(step.sends.size());
  for (std::size_t i = 0; i < step.sends.size(); ++i)
    firing.sends[i] = {&bound.connections[static_cast<std::size_t>(step.sends[i].connection)], step.sends[i].flush};
  firing.stores = step.destination.has_value();
  if (firing.stores) {
    firing.destination = step.destination->buffer;
    firing.destination_offset = chunk_offset(call, bound, *step.destination, place, offset);
  }
  firing.divisor = step.finish ? call.divisor : 1;
  firing.computes = step.operands.size() > 1 || firing.scales || firing.divisor != 1;
  firing.stream = call.stream_output && firing.stores && firing.destination == plan::Buffer::output;
  firing.waits = !step.after.empty() || !step.drain.empty();
  return true;
}

Script::Script(std::span<BoundPlan* const> channels, const Call& call) {
  std::size_t firings = 0, sources = 0, sends = 0, lanes = 0;
  for (const BoundPlan* bound : channels) {
    if (longest_share(call, bound->plan, channels.size()) > call.slice) return;
    lanes += bound->plan.lanes.size();
    for (const plan::Lane& lane : bound->plan.lanes)
      for (const plan::Block& block : lane.blocks) {
        const auto count = static_cast<std::size_t>(std::max(block.count, 0));
        firings += count * block.steps.size();
        if (firings > most_scripted) return;
        for (const plan::Step& step : block.steps) {
          sources += count * step.operands.size();
          sends += count * step.sends.size();
        }
      }
  }
  firings_.resize(firings);
  sources_.resize(sources);
  sends_.resize(sends);
  lanes_.reserve(lanes);
  std::size_t at = 0, source_at = 0, send_at = 0;
  for (std::size_t c = 0; c < channels.size(); ++c)
    for (const plan::Lane& lane : channels[c]->plan.lanes) {
      const std::size_t first = at;
      for (const plan::Block& block : lane.blocks)
        for (std::int32_t j = 0; j < block.count; ++j)
          for (const plan::Step& step : block.steps) {
            Firing& firing = firings_[at++];
            firing.sources = std::span(sources_).subspan(source_at, step.operands.size());
            firing.sends = std::span(sends_).subspan(send_at, step.sends.size());
            source_at += step.operands.size();
            send_at += step.sends.size();
            resolve(call, *channels[c], step, {c, channels.size(), 0, j, 0}, firing);
          }
      lanes_.push_back(std::span(firings_).subspan(first, at - first));
    }
}

}  // namespace rondo::executor
