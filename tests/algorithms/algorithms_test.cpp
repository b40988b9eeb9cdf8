// Every built-in algorithm is proved: values, deadlock, races, order of reduction.
#include "algorithms/proof.hpp"
#include "algorithms/registry.hpp"
#include "plan/checker.hpp"
#include "plan/hash.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace rondo::algorithms {
namespace {

bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

void prove(const Algorithm& algorithm, std::int32_t size, std::int32_t root) {
  const plan::Shape shape{algorithm.collective, size, root};
  const auto plans = plan::generate_all(algorithm.generate, shape);
  const plan::CheckResult result = plan::check_plan(plans);
  ASSERT_TRUE(result.ok()) << result.message;
  EXPECT_EQ(plans[0].name, algorithm.name);
  EXPECT_EQ(plans[0].rank_ordered, algorithm.rank_ordered) << algorithm.name << " among " << size;
  EXPECT_TRUE(result.rank_ordered || !algorithm.rank_ordered);
  EXPECT_GE(result.tiles, 2);
}

class EveryAlgorithm : public testing::TestWithParam<int> {
 protected:
  const Algorithm& algorithm() const { return all()[static_cast<std::size_t>(GetParam())]; }
};

// What is left out here is checked at run time: both go by proved_by_tests().
TEST_P(EveryAlgorithm, IsRightForEveryShapeThatCountsAsProved) {
  std::set<std::int32_t> sizes;
  for (std::int32_t n = 1; n <= largest_proved; ++n)
    for (std::int32_t root = 0; root < (has_root(algorithm().collective) ? n : 1); ++root) {
      if (!proved_by_tests({algorithm().collective, n, root})) continue;
      sizes.insert(n);
      prove(algorithm(), n, root);
    }
  for (std::int32_t n = 1; n <= 33; ++n) EXPECT_TRUE(sizes.contains(n)) << n;
  for (const std::int32_t n : {64, 100, 128}) EXPECT_TRUE(sizes.contains(n)) << n;
  EXPECT_FALSE(proved_by_tests({algorithm().collective, largest_proved + 1, 0}));
}

TEST_P(EveryAlgorithm, CostGrowsWithBytesAndIsZeroForOneRank) {
  const plan::LinkCost link;
  const plan::Shape many{algorithm().collective, 6, 0}, one{algorithm().collective, 1, 0};
  EXPECT_EQ(algorithm().cost(one, 1000, link), 0);
  EXPECT_GE(algorithm().cost(many, 0, link), link.alpha);
  if (algorithm().collective != Collective::barrier) {
    EXPECT_LT(algorithm().cost(many, 1000, link), algorithm().cost(many, 1e6, link));
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithm, testing::Range(0, static_cast<int>(all().size())),
                         [](const testing::TestParamInfo<int>& which) {
                           const Algorithm& a = all()[static_cast<std::size_t>(which.param)];
                           return std::string(name_of(a.collective)) + "_" + std::string(a.name);
                         });

TEST(Registry, NamesAreUniqueWithinACollectiveAndFound) {
  std::set<std::pair<Collective, std::string_view>> names;
  for (const Algorithm& a : all()) {
    EXPECT_TRUE(names.emplace(a.collective, a.name).second) << a.name;
    EXPECT_EQ(find(a.collective, a.name), &a);
  }
  EXPECT_EQ(find(Collective::all_to_all, "ring"), nullptr);
}

TEST(Registry, EveryCollectiveWithAPlanHasARankOrderedOne) {
  for (const Collective c :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::broadcast,
        Collective::reduce, Collective::all_to_all, Collective::gather, Collective::scatter, Collective::barrier})
    EXPECT_TRUE(std::any_of(all().begin(), all().end(), [&](const Algorithm& a) {
      return a.collective == c && a.rank_ordered;
    })) << name_of(c);
}

// 2 (n - 1) messages a rank for the ring; the closed form of the bandwidth-optimal all-reduce.
TEST(Ring, AllReduceSendsTwiceNMinusOneMessagesARank) {
  const Algorithm* ring = find(Collective::all_reduce, "ring");
  for (const std::int32_t n : {2, 3, 8, 17}) {
    const auto result = plan::check_generator(ring->generate, {Collective::all_reduce, n, 0});
    EXPECT_EQ(result.messages, 2 * (n - 1) * n);
    EXPECT_EQ(result.steps, (2 * n - 1) * n);
  }
  const plan::LinkCost link{2e-6, 1e-9, 0};
  EXPECT_DOUBLE_EQ(ring->cost({Collective::all_reduce, 8, 0}, 8e6, link), 2 * 7 * 2e-6 + 2 * 7.0 / 8 * 8e6 * 1e-9);
}

TEST(Ring, OneRankOfAMillionIsAsSmallAsOneOfTen) {
  const Algorithm* ring = find(Collective::all_reduce, "ring");
  const auto small = ring->generate({Collective::all_reduce, 10, 0}, 7);
  const auto large = ring->generate({Collective::all_reduce, 1'000'000, 0}, 999'999);
  ASSERT_EQ(large.lanes.size(), 1U);
  EXPECT_EQ(large.lanes[0].blocks.size(), small.lanes[0].blocks.size());
  EXPECT_EQ(large.connections.size(), 2U);
}

TEST(Hash, TellsRanksShapesAndAlgorithmsApart) {
  std::set<std::uint64_t> hashes;
  std::size_t plans = 0;
  for (const Algorithm& a : all())
    for (std::int32_t n = 1; n <= 6; ++n)
      for (std::int32_t r = 0; r < n; ++r, ++plans) hashes.insert(plan::hash_of(a.generate({a.collective, n, 0}, r)));
  EXPECT_EQ(hashes.size(), plans);
  const auto again = all()[0].generate({all()[0].collective, 5, 0}, 2);
  EXPECT_EQ(plan::hash_of(again), plan::hash_of(all()[0].generate({all()[0].collective, 5, 0}, 2)));
}

}  // namespace
}  // namespace rondo::algorithms
