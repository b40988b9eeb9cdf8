// Plans as JSON, to be read by people and programs, and to be written by them (docs/plan-format.md is the schema).
//
// Pure functions; any thread. What is read is hostile until it has been parsed: every value is checked for its type and
// range here, and check_plan() proves the rest.
#pragma once

#include "plan/plan.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::plan {

inline constexpr std::size_t largest_json = std::size_t{256} << 20;  // bytes of text

// plans[r] is rank r's; one step a line.
std::string to_json(std::span<const RankPlan> plans);

// Throws Error(plan) that names `file` and, of text that is no JSON, the line; of JSON that is no plan, the path of the
// value that is wrong ("ranks[1].lanes[0].blocks[0].steps[2].extent.base"), what it is and what is allowed.
std::vector<RankPlan> from_json(std::string_view text, std::string_view file);

}  // namespace rondo::plan
