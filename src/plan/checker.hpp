// The checker: proves a plan right for every buffer, every number of tiles and every timing, or names what is wrong.
//
// A plan is a Kahn process network (sequential lanes, blocking reads, writes that block on credits), so executing it
// once, on symbols, decides values and deadlock for all schedules; vector clocks decide races. See docs/plans.md for
// what is proved and why that is enough. Pure functions; any thread; time and memory are proportional to the plan's
// steps, messages and, where ranks have several lanes or reference messages, those times the number of lanes.
#pragma once

#include "plan/plan.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::plan {

enum class Violation : std::uint8_t {
  none,
  structure,     // an index out of range, a connection twice in a step or used by two lanes, chunks that aren't the
                 // collective's, a write to input, a plan too large to check
  pairing,       // an end without its other end, or ends that disagree on slots_min or direct
  balance,       // more sends than receives of a connection, or the reverse
  length,        // one step, or both ends of a message, name chunks that can differ in length
  deadlock,      // no lane can go on, with slots_min slots a connection
  undefined,     // reads a chunk that nothing has been written to
  double_count,  // a contribution is reduced twice
  wrong_result,  // an output chunk is not what the collective promises
  finish,        // the complete reduction is marked never, twice or too early
  race,          // two accesses to a chunk, one a write, that nothing orders
  rank_order,    // the plan says rank_ordered and isn't
};
std::string_view name_of(Violation violation);

struct CheckOptions {
  // Tiles to execute; 0: as many as a proof needs (docs/plans.md).
  std::int32_t tiles = 0;
  // A plan with more step executions than this is refused as too large.
  std::int64_t max_steps = std::int64_t{1} << 28;
};

struct CheckResult {
  Violation violation = Violation::none;
  std::string message;  // with the rank, lane and step
  std::int32_t rank = -1;
  std::int32_t lane = -1;
  std::int64_t step = -1;  // counted through the lane with loops unrolled
  // Of a plan that passed:
  bool rank_ordered = false;  // every output chunk is one reduction of raw contributions in ascending rank order
  std::int64_t steps = 0;     // a tile, all ranks
  std::int64_t messages = 0;  // a tile, all ranks
  std::int32_t tiles = 0;     // executed
  bool ok() const { return violation == Violation::none; }
};

// plans[r] is rank r's.
CheckResult check_plan(std::span<const RankPlan> plans, const CheckOptions& options = {});

using GenerateRank = std::function<RankPlan(const Shape& shape, std::int32_t rank)>;
std::vector<RankPlan> generate_all(const GenerateRank& generate, const Shape& shape);
// Generates the plans of all ranks and checks them.
CheckResult check_generator(const GenerateRank& generate, const Shape& shape, const CheckOptions& options = {});

}  // namespace rondo::plan
