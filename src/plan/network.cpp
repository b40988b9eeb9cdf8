#include "plan/network.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <string>

namespace rondo::plan {
namespace {

struct Refusal {
  CheckResult result;
};

// Chunk counts of input and output that the collective prescribes; -1: any equal c >= 1, found on its first holder.
struct Prescribed {
  std::int32_t input, output;
};

Prescribed prescribed(const RankPlan& plan) {
  constexpr std::int32_t any = -1;
  const bool root = plan.rank == plan.root;
  switch (plan.collective) {
    case Collective::all_reduce: return {any, any};
    case Collective::reduce: return {any, root ? any : 0};
    case Collective::broadcast: return {root ? any : 0, any};
    case Collective::all_gather: return {1, plan.size};
    case Collective::reduce_scatter: return {plan.size, 1};
    case Collective::all_to_all: return {plan.size, plan.size};
    case Collective::gather: return {1, root ? plan.size : 0};
    case Collective::scatter: return {root ? plan.size : 0, 1};
    case Collective::barrier: return {1, 1};
    default: return {-2, -2};
  }
}

class RankCheck {
 public:
  RankCheck(const RankPlan& plan, const CheckOptions& options, Network& network, std::vector<std::int64_t>& uses)
      : plan_(plan), options_(options), network_(network), uses_(uses) {}

  void run() {
    seen_.assign(plan_.connections.size(), 0);
    for (std::size_t c = 0; c < plan_.connections.size(); ++c) connection(c);
    // Lengths first: `after` may name a later lane.
    for (std::size_t l = 0; l < plan_.lanes.size(); ++l) measure(static_cast<std::int32_t>(l));
    for (std::size_t l = 0; l < plan_.lanes.size(); ++l) lane(static_cast<std::int32_t>(l));
  }

 private:
  [[noreturn]] void refuse(const std::string& what, std::int32_t lane_index = -1, std::int64_t step_index = -1) const {
    throw Refusal{violation_at(plan_, Violation::structure, lane_index, step_index, what)};
  }

  void connection(std::size_t c) const {
    const Connection& end = plan_.connections[c];
    if (end.peer < 0 || end.peer >= plan_.size)
      refuse(fmt::format("connection {} names peer {}; peers are 0 .. {}", c, end.peer, plan_.size - 1));
    if (end.lane < 0 || static_cast<std::size_t>(end.lane) >= plan_.lanes.size())
      refuse(fmt::format("connection {} belongs to lane {} of {} lanes", c, end.lane, plan_.lanes.size()));
    if (end.slots_min < 1) refuse(fmt::format("connection {} has {} slots; at least 1 is needed", c, end.slots_min));
    if (end.direction != Direction::outgoing && end.direction != Direction::incoming)
      refuse(fmt::format("connection {} has no direction", c));
  }

  void measure(std::int32_t l) const {
    LaneOfRank entry{plan_.rank, l, 0, false};
    for (const Block& block : plan_.lanes[static_cast<std::size_t>(l)].blocks) {
      if (block.count < 1) refuse(fmt::format("a loop of {} turns; at least 1 is needed", block.count), l);
      entry.steps += std::int64_t{block.count} * static_cast<std::int64_t>(block.steps.size());
      if (entry.steps > options_.max_steps)
        refuse(fmt::format("more than {} steps; too large to check", options_.max_steps), l);
    }
    network_.steps += entry.steps;
    network_.lanes.push_back(entry);
  }

  void lane(std::int32_t l) {
    std::int64_t at = 0;
    for (const Block& block : plan_.lanes[static_cast<std::size_t>(l)].blocks) {
      for (std::size_t s = 0; s < block.steps.size(); ++s)
        step(block.steps[s], block.count, l, at + static_cast<std::int64_t>(s));
      at += std::int64_t{block.count} * static_cast<std::int64_t>(block.steps.size());
    }
  }

  void chunk(const ChunkRef& ref, const char* what, std::int32_t l, std::int64_t at) const {
    const auto buffer = static_cast<int>(ref.buffer);
    if (buffer < 0 || buffer >= buffer_count) refuse(fmt::format("{} names buffer {}", what, buffer), l, at);
    const std::int32_t chunks = plan_.chunks[buffer];
    if (ref.base < 0 || ref.base >= chunks || ref.stride <= -chunks || ref.stride >= chunks)
      refuse(fmt::format("{} is chunk {} with stride {} of a buffer of {} chunks on this rank", what, ref.base,
                         ref.stride, chunks),
             l, at);
  }

  std::size_t end(std::int32_t c, Direction direction, const char* what, std::int32_t l, std::int64_t at) const {
    if (c < 0 || static_cast<std::size_t>(c) >= plan_.connections.size())
      refuse(fmt::format("{} names connection {} of {}", what, c, plan_.connections.size()), l, at);
    const auto index = static_cast<std::size_t>(c);
    const Connection& connection = plan_.connections[index];
    if (connection.direction != direction)
      refuse(fmt::format("{} uses connection {}, which goes the other way", what, c), l, at);
    if (connection.lane != l)
      refuse(fmt::format("{} uses connection {}, which belongs to lane {}", what, c, connection.lane), l, at);
    return index;
  }

  void use(std::size_t c, std::int32_t count, std::int32_t l, std::int64_t at) {
    if (seen_[c] == stamp_) refuse(fmt::format("uses connection {} twice", c), l, at);
    seen_[c] = stamp_;
    uses_[static_cast<std::size_t>(network_.end_base.back()) + c] += count;
  }

  void step(const Step& s, std::int32_t count, std::int32_t l, std::int64_t at) {
    ++stamp_;
    if (s.operands.empty()) refuse("a step without operands", l, at);
    for (const Operand& operand : s.operands) {
      if (operand.kind == Operand::Kind::local) chunk(operand.chunk, "an operand", l, at);
      else use(end(operand.connection, Direction::incoming, "a receive", l, at), count, l, at);
    }
    if (s.destination) {
      chunk(*s.destination, "the destination", l, at);
      if (s.destination->buffer == Buffer::input) refuse("writes to input", l, at);
    }
    for (const Send& send : s.sends) use(end(send.connection, Direction::outgoing, "a send", l, at), count, l, at);
    chunk(s.extent, "the extent", l, at);
    if (s.extent.buffer == Buffer::scratch) refuse("takes its extent from scratch, which has no length", l, at);
    for (const std::int32_t c : s.drain) end(c, Direction::outgoing, "a drain", l, at);
    for (const After& after : s.after) {
      const auto lanes = static_cast<std::int32_t>(plan_.lanes.size());
      if (after.lane < 0 || after.lane >= lanes || after.lag < 0)
        refuse(fmt::format("waits for lane {} of {} lanes with lag {}", after.lane, lanes, after.lag), l, at);
      LaneOfRank& other = network_.lanes[static_cast<std::size_t>(network_.lane_base.back() + after.lane)];
      if (after.step < 0 || after.step >= other.steps)
        refuse(fmt::format("waits for step {} of lane {}, which has {}", after.step, after.lane, other.steps), l, at);
      other.awaited = true;
      network_.has_after = true;
      network_.max_lag = std::max(network_.max_lag, after.lag);
    }
  }

  const RankPlan& plan_;
  const CheckOptions& options_;
  Network& network_;
  std::vector<std::int64_t>& uses_;
  std::vector<std::int64_t> seen_;
  std::int64_t stamp_ = 0;
};

void check_header(std::span<const RankPlan> plans) {
  const RankPlan& first = plans.front();
  std::int32_t common = 0;  // the c of collectives that leave it open
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const RankPlan& plan = plans[r];
    const auto refuse = [&](const std::string& what) {
      throw Refusal{violation_at(plan, Violation::structure, -1, -1, what)};
    };
    if (plan.rank != static_cast<std::int32_t>(r) || plan.size != static_cast<std::int32_t>(plans.size()))
      refuse(fmt::format("stands at place {} of {} plans", r, plans.size()));
    if (plan.collective != first.collective || plan.name != first.name || plan.root != first.root ||
        plan.rank_ordered != first.rank_ordered)
      refuse("differs from rank 0 in collective, name, root or rank_ordered");
    if (plan.root < 0 || plan.root >= plan.size) refuse(fmt::format("root {} is no rank", plan.root));
    const Prescribed want = prescribed(plan);
    if (want.input == -2) refuse(fmt::format("{} has no plans of its own", name_of(plan.collective)));
    const auto matches = [&](std::int32_t wanted, std::int32_t got) {
      if (wanted >= 0) return got == wanted;
      if (common == 0) common = got;
      return got >= 1 && got == common;
    };
    const std::int32_t in = plan.chunks[0], out = plan.chunks[1], scratch_chunks = plan.chunks[2];
    if (!matches(want.input, in) || !matches(want.output, out))
      refuse(
          fmt::format("{} / {} chunks of input / output are not what {} has there", in, out, name_of(plan.collective)));
    if (scratch_chunks < 0 || plan.scratch_tiles < 1 || plan.scratch_tiles > 1024)
      refuse(fmt::format("{} scratch chunks in {} tiles; 0 or more in 1 .. 1024 work", scratch_chunks,
                         plan.scratch_tiles));
  }
}

// Open addressing over (source, destination, tag): the outgoing ends go in, the incoming ones look them up.
class WireTable {
 public:
  explicit WireTable(std::size_t ends) {
    std::size_t size = 16;
    while (size < 2 * ends) size *= 2;
    slots_.assign(size, -1);
  }
  // The slot that holds the wire of this name, or a free one.
  std::int32_t& find(const std::vector<Wire>& wires, std::int32_t source, std::int32_t destination, std::int32_t tag) {
    std::uint64_t hash = static_cast<std::uint32_t>(source) * 0x9E3779B97F4A7C15ULL;
    hash = (hash ^ static_cast<std::uint32_t>(destination)) * 0xC2B2AE3D27D4EB4FULL;
    hash = (hash ^ static_cast<std::uint32_t>(tag)) * 0x165667B19E3779F9ULL;
    for (std::size_t i = hash >> 20;; ++i) {
      std::int32_t& slot = slots_[i & (slots_.size() - 1)];
      if (slot < 0) return slot;
      const Wire& wire = wires[static_cast<std::size_t>(slot)];
      if (wire.source == source && wire.destination == destination && wire.tag == tag) return slot;
    }
  }

 private:
  std::vector<std::int32_t> slots_;
};

void pair_ends(std::span<const RankPlan> plans, Network& network, const std::vector<std::int64_t>& uses) {
  const std::size_t ends = uses.size();
  network.wire_of_end.assign(ends, -1);
  std::vector<std::int64_t> sent;
  WireTable table(ends);
  const auto refuse = [](const RankPlan& plan, const Connection& end, Violation kind, const std::string& what) {
    throw Refusal{
        violation_at(plan, kind, end.lane, -1,
                     fmt::format("the connection {} rank {} with tag {} {}",
                                 end.direction == Direction::outgoing ? "to" : "from", end.peer, end.tag, what))};
  };
  for (const RankPlan& plan : plans) {
    const auto r = static_cast<std::size_t>(plan.rank);
    for (std::size_t c = 0; c < plan.connections.size(); ++c) {
      const Connection& end = plan.connections[c];
      if (end.direction != Direction::outgoing) continue;
      std::int32_t& slot = table.find(network.wires, plan.rank, end.peer, end.tag);
      if (slot >= 0) refuse(plan, end, Violation::pairing, "exists twice");
      slot = static_cast<std::int32_t>(network.wires.size());
      const std::size_t at = static_cast<std::size_t>(network.end_base[r]) + c;
      network.wire_of_end[at] = slot;
      network.wires.push_back(
          {plan.rank, end.peer, end.tag, network.lane_base[r] + end.lane, -1, end.slots_min, end.direct, false});
      network.needs_clocks |= end.direct;
      sent.push_back(uses[at]);
      network.messages += uses[at];
    }
  }
  for (const RankPlan& plan : plans) {
    const auto r = static_cast<std::size_t>(plan.rank);
    for (std::size_t c = 0; c < plan.connections.size(); ++c) {
      const Connection& end = plan.connections[c];
      if (end.direction != Direction::incoming) continue;
      const std::int32_t w = table.find(network.wires, end.peer, plan.rank, end.tag);
      if (w < 0) refuse(plan, end, Violation::pairing, "has no sending end");
      Wire& wire = network.wires[static_cast<std::size_t>(w)];
      if (wire.receiving_lane >= 0) refuse(plan, end, Violation::pairing, "exists twice");
      if (wire.slots != end.slots_min || wire.direct != end.direct)
        refuse(plan, end, Violation::pairing,
               fmt::format("has {} slots, direct {} here and {} slots, direct {} there", end.slots_min, end.direct,
                           wire.slots, wire.direct));
      wire.receiving_lane = network.lane_base[r] + end.lane;
      const std::size_t at = static_cast<std::size_t>(network.end_base[r]) + c;
      network.wire_of_end[at] = w;
      if (uses[at] != sent[static_cast<std::size_t>(w)])
        refuse(plan, end, Violation::balance,
               fmt::format("carries {} messages a tile, but {} are received", sent[static_cast<std::size_t>(w)],
                           uses[at]));
    }
  }
  for (const Wire& wire : network.wires)
    if (wire.receiving_lane < 0) {
      Connection end;
      end.peer = wire.destination;
      end.tag = wire.tag;
      const auto source = static_cast<std::size_t>(wire.source);
      end.lane = wire.sending_lane - network.lane_base[source];
      refuse(plans[source], end, Violation::pairing, "has no receiving end");
    }
}

void mark_drains(std::span<const RankPlan> plans, Network& network) {
  for (const RankPlan& plan : plans)
    for (const Lane& lane : plan.lanes)
      for (const Block& block : lane.blocks)
        for (const Step& step : block.steps)
          for (const std::int32_t c : step.drain) {
            const auto at = static_cast<std::size_t>(network.end_base[static_cast<std::size_t>(plan.rank)] + c);
            network.wires[static_cast<std::size_t>(network.wire_of_end[at])].drained = true;
          }
}

}  // namespace

CheckResult violation_at(const RankPlan& plan, Violation violation, std::int32_t lane, std::int64_t step,
                         const std::string& what) {
  CheckResult result;
  result.violation = violation;
  result.rank = plan.rank;
  result.lane = lane;
  result.step = step;
  result.message = fmt::format("{} by {} among {}, rank {}", name_of(plan.collective), plan.name, plan.size, plan.rank);
  if (lane >= 0) result.message += fmt::format(", lane {}", lane);
  if (step >= 0) result.message += fmt::format(", step {}", step);
  result.message += fmt::format(": {}: {}", name_of(violation), what);
  return result;
}

CheckResult wire_up(std::span<const RankPlan> plans, const CheckOptions& options, Network& network) {
  try {
    if (plans.empty()) {
      CheckResult result;
      result.violation = Violation::structure;
      result.message = "a plan of no ranks; at least 1 is needed";
      return result;
    }
    check_header(plans);
    std::vector<std::int64_t> uses;
    for (const RankPlan& plan : plans) {
      network.lane_base.push_back(static_cast<std::int32_t>(network.lanes.size()));
      network.end_base.push_back(static_cast<std::int32_t>(uses.size()));
      uses.resize(uses.size() + plan.connections.size(), 0);
      network.needs_clocks |= plan.lanes.size() > 1;
      if (plan.chunks[static_cast<int>(Buffer::scratch)] > 0)
        network.scratch_tiles = std::max(network.scratch_tiles, plan.scratch_tiles);
      RankCheck(plan, options, network, uses).run();
    }
    pair_ends(plans, network, uses);
    mark_drains(plans, network);
  } catch (const Refusal& refusal) {
    return refusal.result;
  }
  return {};
}

}  // namespace rondo::plan
