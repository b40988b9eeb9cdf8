// The static half of the checker: the rules that need no execution, and the wiring of all ranks' lanes and connections.
#pragma once

#include "plan/checker.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace rondo::plan {

// A connection, both ends. Lanes are numbered through all ranks.
struct Wire {
  std::int32_t source = 0, destination = 0;  // ranks
  std::int32_t tag = 0;
  std::int32_t sending_lane = -1, receiving_lane = -1;
  std::int32_t slots = 1;
  bool direct = false;
  bool drained = false;  // some step drains it
};

struct LaneOfRank {
  std::int32_t rank = 0;
  std::int32_t lane = 0;
  std::int64_t steps = 0;  // a tile, loops unrolled
  bool awaited = false;    // an `after` names it
};

struct Network {
  std::vector<std::int32_t> lane_base;  // of a rank: where its lanes begin
  std::vector<std::int32_t> end_base;   // of a rank: where its connection ends begin in wire_of_end
  std::vector<std::int32_t> wire_of_end;
  std::vector<Wire> wires;
  std::vector<LaneOfRank> lanes;
  std::int64_t steps = 0;     // a tile, all ranks
  std::int64_t messages = 0;  // a tile, all ranks
  std::int32_t max_lag = 0;
  bool has_after = false;
  std::int32_t scratch_tiles = 0;  // 0: no scratch
  bool needs_clocks = false;       // several lanes on a rank, or references
};

// Which chunks have equal lengths whatever the counts: equal keys. Scratch has room for any.
inline constexpr std::int64_t any_length = -1;
inline std::int64_t length_key(const RankPlan& plan, Buffer buffer, std::int32_t chunk) {
  if (buffer == Buffer::scratch) return any_length;
  const bool in = buffer == Buffer::input;
  switch (plan.collective) {
    case Collective::all_gather:
    case Collective::gather: return in ? plan.rank : chunk;
    case Collective::reduce_scatter:
    case Collective::scatter: return in ? chunk : plan.rank;
    case Collective::all_to_all:
      return in ? std::int64_t{plan.rank} * plan.size + chunk : std::int64_t{chunk} * plan.size + plan.rank;
    default: return chunk;
  }
}

// Fills `network`, or returns the first violation.
CheckResult wire_up(std::span<const RankPlan> plans, const CheckOptions& options, Network& network);

// "all_reduce by ring, rank 3, lane 0, step 5: <what>" as a result.
CheckResult violation_at(const RankPlan& plan, Violation violation, std::int32_t lane, std::int64_t step,
                         const std::string& what);

}  // namespace rondo::plan
