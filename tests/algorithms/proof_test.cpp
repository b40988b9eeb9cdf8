// Plans that no test has proved are checked at run time, once.
#include "algorithms/proof.hpp"

#include <rondo/error.hpp>

#include <gtest/gtest.h>
#include <atomic>
#include <thread>
#include <vector>

namespace rondo::algorithms {
namespace {

TEST(Proof, OfWhatTheTestsHaveProvedIsNotRepeated) {
  for (const Algorithm& a : all())
    for (const std::int32_t n : {1, 2, 33, 64, 100, 128})
      EXPECT_EQ(ensure_proved(a, {a.collective, n, 0}), Proof::by_tests) << a.name << " among " << n;
}

TEST(Proof, OfOtherShapesIsCheckedForEveryAlgorithm) {
  for (const Algorithm& a : all()) EXPECT_EQ(ensure_proved(a, {a.collective, 41, 0}), Proof::checked) << a.name;
  const Algorithm& broadcast = *find(Collective::broadcast, "ring");
  EXPECT_EQ(ensure_proved(broadcast, {Collective::broadcast, 64, 5}), Proof::checked);
}

TEST(Proof, OfWhatIsTooLargeIsNotTried) {
  const Algorithm& a = *find(Collective::all_reduce, "two_shot");
  EXPECT_EQ(ensure_proved(a, {Collective::all_reduce, 100000, 0}), Proof::impossible);
}

std::atomic<int> generated{0};
plan::RankPlan counted(const plan::Shape& shape, std::int32_t rank) {
  ++generated;
  return find(Collective::all_reduce, "ring")->generate(shape, rank);
}
TEST(Proof, IsRememberedByTheProcess) {
  Algorithm a = *find(Collective::all_reduce, "ring");
  a.generate = counted;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&a] { EXPECT_EQ(ensure_proved(a, {Collective::all_reduce, 40, 0}), Proof::checked); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(generated.load(), 41);  // each rank's, and one more to see the size
}

plan::RankPlan forgetful(const plan::Shape& shape, std::int32_t rank) {
  plan::RankPlan plan = find(Collective::all_reduce, "ring")->generate(shape, rank);
  if (rank == 7) plan.lanes[0].blocks.back().steps.back().destination.reset();
  return plan;
}
TEST(Proof, FailsWithWhatTheCheckerFoundEveryTime) {
  Algorithm a = *find(Collective::all_reduce, "ring");
  a.generate = forgetful;
  for (int round = 0; round < 2; ++round) {
    try {
      ensure_proved(a, {Collective::all_reduce, 12, 0});
      ADD_FAILURE() << "a plan that loses a result was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::plan);
      EXPECT_NE(error.message().find("all_reduce ring among 12 ranks"), std::string::npos) << error.what();
      EXPECT_NE(error.message().find("rank 7"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace rondo::algorithms
