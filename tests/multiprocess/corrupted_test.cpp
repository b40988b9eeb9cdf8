// Nothing bypasses plans: the perf programs see it (-c 1) when one step of the plan that they run is corrupted.
#include "algorithms/registry.hpp"
#include "multiprocess/job.hpp"

#include <ostream>

namespace rondo::test {
namespace {

struct Row {
  const algorithms::Algorithm* algorithm;
  friend void PrintTo(const Row& row, std::ostream* out) {
    *out << name_of(row.algorithm->collective) << " " << row.algorithm->name;
  }
};

std::string benchmark_of(Collective collective) {
  return collective == Collective::all_to_all ? "alltoall_perf" : std::string(name_of(collective)) + "_perf";
}

class CorruptedPlan : public testing::TestWithParam<Row> {};

TEST_P(CorruptedPlan, MakesTheBenchmarkFailAtEverySize) {
  const algorithms::Algorithm& a = *GetParam().algorithm;
  const std::string collective(name_of(a.collective)), name(a.name);
  // The benchmark adds up what it found with an all_reduce of a few bytes, which stays whole.
  const std::string other = name == "one_shot" ? "two_shot" : "one_shot";
  std::string algorithms = collective + ":256-inf=" + name;
  if (a.collective == Collective::all_reduce) algorithms = "all_reduce:0-255=" + other + ",256-inf=" + name;
  for (const char* size : {"4K", "64K", "1M"})
    for (const bool corrupted : {false, true}) {
      std::vector<std::string> variables{"RONDO_ALGO=" + algorithms};
      if (corrupted) variables.push_back("CORRUPT=" + collective + ":" + name);
      Job job(
          4,
          {program("corrupted_" + benchmark_of(a.collective)), "-b", size, "-e", size, "-n", "1", "-w", "0", "-c", "1"},
          variables);
      EXPECT_EQ(job.finish(), corrupted ? 1 : 0) << job.story();
      EXPECT_EQ(count(job.text(), "# Out of bounds values : 0 OK"), corrupted ? 0 : 1) << job.story();
    }
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const algorithms::Algorithm& a : algorithms::all())
    if (a.collective != Collective::barrier) all.push_back({&a});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Everyday, CorruptedPlan, testing::ValuesIn(rows()), [](const auto& tested) {
  return std::string(name_of(tested.param.algorithm->collective)) + "_" + std::string(tested.param.algorithm->name);
});

}  // namespace
}  // namespace rondo::test
