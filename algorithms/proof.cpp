#include "algorithms/proof.hpp"

#include "base/log.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <chrono>
#include <map>
#include <mutex>
#include <tuple>

namespace rondo::algorithms {
namespace {

// Steps of all ranks, with their tiles: half a second of checking.
constexpr std::int64_t most_steps = std::int64_t{1} << 20;

// Plans of hundreds of ranks are made whole only if their size allows a check: one rank's is an estimate of all.
bool too_large(const Algorithm& algorithm, const plan::Shape& shape) {
  std::int64_t steps = 0;
  const plan::RankPlan plan = algorithm.generate(shape, shape.root);
  for (const plan::Lane& lane : plan.lanes)
    for (const plan::Block& block : lane.blocks)
      steps += std::int64_t{block.count} * static_cast<std::int64_t>(block.steps.size());
  return steps * shape.size > most_steps || std::int64_t{shape.size} * shape.size > most_steps;
}

struct Memory {
  std::mutex mutex;
  std::map<std::tuple<const Algorithm*, std::int32_t, std::int32_t>, bool> checked;  // false: too large
};
Memory& memory() {
  static Memory memory;
  return memory;
}

}  // namespace

bool proved_by_tests(const plan::Shape& shape) {
  if (shape.size <= 33) return true;
  const bool proved_size = shape.size == 64 || shape.size == 100 || shape.size == largest_proved;
  const bool proved_root =
      shape.root == 0 || shape.root == 1 || shape.root == shape.size / 2 || shape.root == shape.size - 1;
  return proved_size && proved_root;
}

Proof ensure_proved(const Algorithm& algorithm, const plan::Shape& shape) {
  if (proved_by_tests(shape) && find(algorithm.collective, algorithm.name) == &algorithm) return Proof::by_tests;
  const std::lock_guard lock(memory().mutex);
  const std::tuple key{&algorithm, shape.size, shape.root};
  if (const auto known = memory().checked.find(key); known != memory().checked.end())
    return known->second ? Proof::checked : Proof::impossible;
  const std::string what =
      fmt::format("the plan of {} {} among {} ranks", name_of(algorithm.collective), algorithm.name, shape.size);
  if (too_large(algorithm, shape)) {
    base::log(base::LogLevel::info, base::Subsystem::plan, "{} is too large to check now", what);
    memory().checked[key] = false;
    return Proof::impossible;
  }
  const auto start = std::chrono::steady_clock::now();
  const plan::CheckResult result = plan::check_generator(algorithm.generate, shape);
  if (!result.ok())
    throw Error(ErrorCode::plan, fmt::format("{} is wrong: {}", what, result.message),
                "choose another algorithm with RONDO_ALGO, and report this one");
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  base::log(base::LogLevel::info, base::Subsystem::plan, "{} was checked in {:.1f} ms: {} steps, {} messages", what,
            took.count(), result.steps, result.messages);
  memory().checked[key] = true;
  return Proof::checked;
}

}  // namespace rondo::algorithms
