// A plan's file, and what the checker makes of a plan that parses.
#include "algorithms/registry.hpp"
#include "plan/checker.hpp"
#include "plan/json.hpp"

#include "harness/target.hpp"

namespace rondo::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> found;
  for (const auto& a : algorithms::all())
    found.push_back(bytes_of(plan::to_json(plan::generate_all(a.generate, {a.collective, 3, 1}))));
  return found;
}

bool parse(std::span<const std::byte> input) {
  return accepts(
      [&] {
        const auto plans = plan::from_json(text_of(input), "plan.json");
        require(plan::from_json(plan::to_json(plans), "again") == plans, "a written plan reads as the same");
        plan::check_plan(plans, {.max_steps = 1 << 12});
      },
      {ErrorCode::plan});
}

}  // namespace rondo::fuzz
