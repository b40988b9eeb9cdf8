// Every built-in algorithm is proved: values, deadlock, races, order of reduction.
#include "algorithms/proof.hpp"
#include "algorithms/registry.hpp"
#include "plan/checker.hpp"
#include "plan/hash.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

// The length of the longest way of messages from `rank` along connections with `tag`, against their direction.
int depth_of(const std::vector<plan::RankPlan>& plans, std::int32_t rank, std::int32_t tag) {
  int deepest = 0;
  for (const plan::Connection& c : plans[static_cast<std::size_t>(rank)].connections)
    if (c.direction == plan::Direction::incoming && c.tag == tag)
      deepest = std::max(deepest, 1 + depth_of(plans, c.peer, tag));
  return deepest;
}

// The properties that the paper asks of the two trees: each spans all ranks, log n deep, and no rank has children in
// both.
TEST(DoubleBinaryTree, TreesAreShallowAndShareNoInnerRank) {
  const Algorithm* tree = find(Collective::all_reduce, "double_binary_tree");
  for (std::int32_t n = 2; n <= 130; ++n) {
    const auto plans = plan::generate_all(tree->generate, {Collective::all_reduce, n, 0});
    std::vector<int> with_children(static_cast<std::size_t>(n));
    for (const std::int32_t up : {0, 2}) {
      int edges = 0, roots = 0;
      for (const plan::RankPlan& p : plans) {
        int children = 0, parents = 0;
        for (const plan::Connection& c : p.connections) {
          if (c.tag != up) continue;
          if (c.direction == plan::Direction::incoming) ++children;
          else ++parents;
        }
        EXPECT_LE(children, 2);
        edges += children;
        if (parents == 0) {
          ++roots;
          EXPECT_LE(children, 1);  // a root has one child, so it may be an inner rank of the other tree
          EXPECT_LE(depth_of(plans, p.rank, up), std::bit_width(static_cast<unsigned>(n - 1))) << n;
        } else if (children > 0) {
          ++with_children[static_cast<std::size_t>(p.rank)];
        }
      }
      EXPECT_EQ(roots, 1) << n;
      EXPECT_EQ(edges, n - 1) << n;
    }
    EXPECT_EQ(std::count(with_children.begin(), with_children.end(), 2), 0) << n;
  }
}

TEST(BinomialTree, IsLogarithmicallyDeep) {
  const Algorithm* tree = find(Collective::reduce, "binomial_tree");
  for (const std::int32_t n : {2, 3, 8, 9, 33, 1000}) {
    const auto plans = plan::generate_all(tree->generate, {Collective::reduce, n, n / 2});
    int ones = 0;  // a rank hangs as many messages below the root as its number has one-bits
    for (std::int32_t v = 0; v < n; ++v) ones = std::max(ones, std::popcount(static_cast<unsigned>(v)));
    EXPECT_EQ(depth_of(plans, n / 2, 0), ones) << n;
  }
}

TEST(Bruck, TakesLogNRoundsAndNMinusOneMessagesARank) {
  const Algorithm* bruck = find(Collective::all_gather, "bruck");
  for (const std::int32_t n : {2, 3, 8, 13, 64}) {
    const auto plans = plan::generate_all(bruck->generate, {Collective::all_gather, n, 0});
    const int rounds = std::bit_width(static_cast<unsigned>(n - 1));
    EXPECT_EQ(plans[0].connections.size(), static_cast<std::size_t>(2 * rounds)) << n;
    EXPECT_EQ(plan::check_plan(plans).messages, std::int64_t{n} * (n - 1)) << n;
  }
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
