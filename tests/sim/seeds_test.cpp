// Thousands of seeds, kills in every phase; planted bugs are found; a seed replays.
//
// RONDO_SEEDS="FIRST-LAST" or "COUNT" chooses the seeds of the long test; RONDO_SEEDS_JSON names a file for its report.
#include "algorithms/registry.hpp"
#include "sim/seed_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace rondo::testing {
namespace {

struct Tally {
  std::uint64_t all_right = 0;
  std::uint64_t named = 0;
};

class Report {
 public:
  void add(const SeedResult& result) {
    ++seeds_;
    turns_ += result.turns;
    ++phases_[phase_names[static_cast<std::size_t>(result.phase)]];
    Tally& tally = algorithms_[result.algorithm];
    ++(result.all_right ? tally.all_right : tally.named);
    for (const auto& [code, count] : result.errors) errors_[code] += count;
  }
  nlohmann::json json() const {
    nlohmann::json out = {{"seeds", seeds_}, {"turns", turns_}, {"kills", phases_}, {"errors", errors_}};
    for (const auto& [name, tally] : algorithms_)
      out["algorithms"][name] = {{"right_values", tally.all_right}, {"survivors_named_the_dead_rank", tally.named}};
    return out;
  }
  const std::map<std::string, Tally>& by_algorithm() const { return algorithms_; }
  const std::map<std::string, std::uint64_t>& phases() const { return phases_; }

 private:
  std::uint64_t seeds_ = 0;
  std::uint64_t turns_ = 0;
  std::map<std::string, std::uint64_t> phases_;
  std::map<std::string, Tally> algorithms_;
  std::map<std::string, int> errors_;
};

Report run_seeds(std::uint64_t first, std::uint64_t last) {
  Report report;
  SeedOptions options;
  options.stacks = std::make_shared<sim::FiberStackPool>();
  int failures = 0;
  for (std::uint64_t seed = first; seed <= last && failures < 10; ++seed) {
    const SeedResult result = run_seed(seed, options);
    EXPECT_EQ(result.failure, "") << result.scenario << "\nreplay: sim_replay --seed " << seed;
    if (!result.failure.empty()) ++failures;
    report.add(result);
  }
  return report;
}

void expect_every_outcome(const Report& report) {
  for (const char* phase : phase_names) EXPECT_TRUE(report.phases().contains(phase)) << phase;
  EXPECT_EQ(report.by_algorithm().size(), algorithms::all().size());
}

TEST(Sim, SeedsEndInRightValuesOrNameTheDeadRank) { expect_every_outcome(run_seeds(1, 1000)); }

TEST(Sim, SeedsEndInRightValuesOrNameTheDeadRankLong) {
  std::uint64_t first = 1, last = 10'000;
  if (const char* text = std::getenv("RONDO_SEEDS")) {
    char* end = nullptr;
    last = std::strtoull(text, &end, 10);
    if (*end == '-') {
      first = last;
      last = std::strtoull(end + 1, nullptr, 10);
    }
  }
  const Report report = run_seeds(first, last);
  const std::string text = report.json().dump(2);
  fmt::print("{}\n", text);
  if (const char* file = std::getenv("RONDO_SEEDS_JSON")) std::ofstream(file) << text << "\n";
  expect_every_outcome(report);
  for (const auto& [name, tally] : report.by_algorithm()) {
    EXPECT_GT(tally.all_right, 0U) << name;
    EXPECT_GT(tally.named, 0U) << name;
  }
}

TEST(Sim, ASeedReplaysWithTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SeedResult once = run_seed(seed, {});
    const SeedResult again = run_seed(seed, {});
    EXPECT_EQ(once.trace_hash, again.trace_hash) << once.scenario;
    EXPECT_EQ(once.turns, again.turns);
    EXPECT_NE(once.trace_hash, run_seed(seed + 1, {}).trace_hash);
  }
}

// How many of 40 seeds without kills fail, for a bug planted at its n-th opportunity.
int found(SeedOptions options, const char* how) {
  options.kills = false;
  options.stacks = std::make_shared<sim::FiberStackPool>();
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const SeedResult result = run_seed(seed, options);
    if (result.failure.empty()) continue;
    EXPECT_THAT(result.failure, ::testing::ContainsRegex(how)) << result.scenario;
    ++count;
  }
  return count;
}

TEST(SimPlanted, ALostWakeUpIsFound) {
  int total = 0;
  for (const std::uint64_t which : {3, 10, 25}) {
    SeedOptions options;
    options.lose_wake = which;
    total += found(options, "a wake-up was lost");
  }
  EXPECT_GT(total, 10);
}

TEST(SimPlanted, ALostCreditIsFound) {
  int total = 0;
  for (const std::uint64_t which : {1, 2, 3}) {
    SeedOptions options;
    options.lose_credit = which;
    total += found(options, "did not finish within|within the deadline");
  }
  EXPECT_GT(total, 30);
  // The same worlds without the loss are healthy.
  SeedOptions healthy;
  healthy.lose_credit = std::uint64_t{1} << 60;
  EXPECT_EQ(found(healthy, "nothing"), 0);
}

}  // namespace
}  // namespace rondo::testing
