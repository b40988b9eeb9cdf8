// CORRUPT=collective:algorithm: the first step of rank 0's plans of it that has a destination loses it. Unset, the
// program is as ever.
#include "executor/corruption.hpp"

#include <cstdlib>
#include <string>

namespace rondo {
namespace {

void corrupt_first(plan::RankPlan& plan) {
  for (plan::Lane& lane : plan.lanes)
    for (plan::Block& block : lane.blocks)
      for (plan::Step& step : block.steps)
        if (corrupt(plan, step, Corruption::forgets_to_store)) return;
}

[[maybe_unused]] const bool installed = [] {
  const char* const wanted = std::getenv("CORRUPT");
  if (wanted == nullptr) return false;
  executor::plan_interceptor() = [name = std::string(wanted)](plan::RankPlan& plan) {
    if (plan.rank == 0 && name == std::string(name_of(plan.collective)) + ":" + plan.name) corrupt_first(plan);
  };
  return true;
}();

}  // namespace
}  // namespace rondo
