// The built-in algorithms: one generator a file, one row a (collective, algorithm) here.
//
// Generators are pure: the RankPlan depends on nothing but shape and rank, so that ranks cannot disagree.
#pragma once

#include "plan/cost.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace rondo::algorithms {

struct Algorithm {
  std::string_view name;  // "ring", "one_shot", "two_shot", "direct", "chain", "recursive_doubling", ...
  Collective collective;
  plan::RankPlan (*generate)(const plan::Shape& shape, std::int32_t rank);
  // Whether the algorithm exists for this shape (recursive_doubling does for every n; none needs a power of two).
  bool (*supports)(const plan::Shape& shape);
  // Closed-form seconds for a message of `bytes` (nccl-tests' size), on one class of link.
  double (*cost)(const plan::Shape& shape, double bytes, const plan::LinkCost& link);
  bool rank_ordered;  // deterministic: see plan::RankPlan
};

// All of them, grouped by collective, cheapest latency first.
std::span<const Algorithm> all();
// Null if there is none of that name for the collective.
const Algorithm* find(Collective collective, std::string_view name);

}  // namespace rondo::algorithms
