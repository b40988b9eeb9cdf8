// Time of making and proving plans, for every built-in algorithm:
//
//   own/COLLECTIVE/ALGORITHM/n     one rank's lanes, which is all that a communicator makes; at most 5 ms are wanted
//   hash/...                       of those lanes
//   whole/...                      the lanes of all n ranks
//   check/...                      the proof of a whole plan; at most 50 ms are wanted for 128 ranks
//
//   bench/plan_benchmark --benchmark_filter='check/.*/128'
//
// The rank is n - 1, which is the root too where there is one: the root has most to do.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/registry.hpp"
#include "plan/checker.hpp"
#include "plan/hash.hpp"

namespace rondo::algorithms {
namespace {

plan::Shape shape_of(const Algorithm& algorithm, std::int64_t ranks) {
  const auto size = static_cast<std::int32_t>(ranks);
  return {algorithm.collective, size, size - 1};
}

void own(benchmark::State& state, const Algorithm& algorithm) {
  const plan::Shape shape = shape_of(algorithm, state.range(0));
  for (auto _ : state) {
    plan::RankPlan plan = algorithm.generate(shape, shape.size - 1);
    benchmark::DoNotOptimize(plan);
  }
}

void hash(benchmark::State& state, const Algorithm& algorithm) {
  const plan::Shape shape = shape_of(algorithm, state.range(0));
  const plan::RankPlan plan = algorithm.generate(shape, shape.size - 1);
  for (auto _ : state) {
    std::uint64_t value = plan::hash_of(plan);
    benchmark::DoNotOptimize(value);
  }
}

void whole(benchmark::State& state, const Algorithm& algorithm) {
  const plan::Shape shape = shape_of(algorithm, state.range(0));
  for (auto _ : state) {
    std::vector<plan::RankPlan> plans = plan::generate_all(algorithm.generate, shape);
    benchmark::DoNotOptimize(plans.data());
  }
}

void check(benchmark::State& state, const Algorithm& algorithm) {
  const std::vector<plan::RankPlan> plans = plan::generate_all(algorithm.generate, shape_of(algorithm, state.range(0)));
  plan::CheckResult result;
  for (auto _ : state) {
    result = plan::check_plan(plans);
    if (!result.ok()) {
      state.SkipWithError(result.message.c_str());
      return;
    }
  }
  state.SetItemsProcessed(state.iterations() * result.steps * result.tiles);
}

using Body = void(benchmark::State& state, const Algorithm& algorithm);

void register_for_all(const char* what, Body* body, const std::vector<std::int64_t>& sizes) {
  for (const Algorithm& algorithm : all()) {
    const std::string name = fmt::format("{}/{}/{}", what, name_of(algorithm.collective), algorithm.name);
    auto* registered = benchmark::RegisterBenchmark(
        name.c_str(), [body, &algorithm](benchmark::State& state) { body(state, algorithm); });
    registered->Unit(benchmark::kMicrosecond);
    for (const std::int64_t size : sizes) registered->Arg(size);
  }
}

}  // namespace
}  // namespace rondo::algorithms

int main(int argc, char** argv) {
  using namespace rondo::algorithms;
  register_for_all("own", own, {8, 128, 1024, 1'000'000});
  register_for_all("hash", hash, {8, 128, 1024, 1'000'000});
  register_for_all("whole", whole, {8, 32, 128});
  register_for_all("check", check, {8, 32, 128});
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
