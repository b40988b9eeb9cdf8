#include "plan/checker.hpp"

#include "plan/execution.hpp"
#include "plan/network.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace rondo::plan {
namespace {

// The exact form keeps whole sets; a failing plan larger than this is explained by its hash alone.
constexpr std::int64_t exact_limit = std::int64_t{1} << 24;

// Tile t's lanes can all run to the end before tile t + 1 starts, at which point all connections are empty: so what
// holds for one tile holds for each, unless tiles share scratch or an `after` looks back. Input and output of different
// tiles are different memory. Hence one tile would do, or as many as reuse scratch or reach back, plus one; two cost
// little and would show a slip in that argument.
std::int32_t tiles_needed(const Network& network) {
  return std::max({2, network.max_lag + 1, network.scratch_tiles + 1});
}

}  // namespace

std::string_view name_of(Violation violation) {
  constexpr std::string_view names[] = {"none",      "structure",    "pairing",      "balance", "length", "deadlock",
                                        "undefined", "double_count", "wrong_result", "finish",  "race",   "rank_order"};
  return names[static_cast<std::size_t>(violation)];
}

CheckResult check_plan(std::span<const RankPlan> plans, const CheckOptions& options) {
  Network network;
  if (CheckResult refused = wire_up(plans, options, network); !refused.ok()) return refused;
  const std::int32_t tiles = options.tiles > 0 ? options.tiles : tiles_needed(network);
  const auto with_size = [&](CheckResult result) {
    result.steps = network.steps;
    result.messages = network.messages;
    result.tiles = tiles;
    return result;
  };
  std::int64_t cells = 0;
  for (const RankPlan& plan : plans)
    cells +=
        (std::int64_t{plan.chunks[0]} + plan.chunks[1]) * tiles + std::int64_t{plan.chunks[2]} * plan.scratch_tiles;
  if (network.steps > options.max_steps / tiles || cells > options.max_steps)
    return with_size(
        violation_at(plans.front(), Violation::structure, -1, -1,
                     fmt::format("{} steps a tile, {} tiles and {} chunks are too much to check; at most {} "
                                 "step executions and chunks are",
                                 network.steps, tiles, cells, options.max_steps)));

  CheckResult result = Execution<HashValue>(plans, network, tiles).run();
  const auto n = static_cast<std::int64_t>(plans.size());
  if ((result.violation == Violation::wrong_result || result.violation == Violation::finish) &&
      network.steps * tiles < exact_limit / n) {
    CheckResult exact = Execution<ExactValue>(plans, network, tiles).run();
    if (!exact.ok()) result = std::move(exact);
  }
  // all_to_all is in place only with chunks of one length, where no chunk has a tile that another lacks.
  const bool uneven_possible = plans.front().collective != Collective::all_to_all;
  if (result.ok() && uneven_possible && network.needs_clocks && !network.has_after && network.scratch_tiles == 0) {
    CheckResult uneven = Execution<HashValue>(plans, network, 1, TileOrder::by_length).run();
    if (!uneven.ok()) {
      uneven.message += " (where chunks are uneven and only this one has a last tile)";
      result = std::move(uneven);
    }
  }
  if (result.ok() && plans.front().rank_ordered && !result.rank_ordered)
    result = violation_at(plans.front(), Violation::rank_order, -1, -1,
                          "the plan says rank_ordered, but not every output is one reduction in ascending rank order");
  return with_size(std::move(result));
}

std::vector<RankPlan> generate_all(const GenerateRank& generate, const Shape& shape) {
  std::vector<RankPlan> plans;
  plans.reserve(static_cast<std::size_t>(shape.size));
  for (std::int32_t r = 0; r < shape.size; ++r) plans.push_back(generate(shape, r));
  return plans;
}

CheckResult check_generator(const GenerateRank& generate, const Shape& shape, const CheckOptions& options) {
  return check_plan(generate_all(generate, shape), options);
}

}  // namespace rondo::plan
