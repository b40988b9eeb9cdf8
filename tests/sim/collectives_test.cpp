// Every collective by every algorithm, in simulation, without faults; streams, splits, heartbeats.
#include "algorithms/registry.hpp"
#include "sim/seed_run.hpp"
#include "sim/sim_world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <vector>

namespace rondo::testing {
namespace {

class SimAlgorithm : public ::testing::TestWithParam<std::size_t> {};

TEST_P(SimAlgorithm, GivesTheDefinedValuesForManySeeds) {
  SeedOptions options;
  options.kills = false;
  options.stacks = std::make_shared<sim::FiberStackPool>();
  options.algorithm = &algorithms::all()[GetParam()];
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const SeedResult result = run_seed(seed, options);
    ASSERT_EQ(result.failure, "") << result.scenario;
    ASSERT_TRUE(result.all_right) << result.scenario;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimAlgorithm, ::testing::Range(std::size_t{0}, algorithms::all().size()),
                         [](const auto& chosen) {
                           const algorithms::Algorithm& a = algorithms::all()[chosen.param];
                           return fmt::format("{}_{}", name_of(a.collective), a.name);
                         });

WorldOptions world_of(int ranks, int hosts, std::uint64_t seed) {
  WorldOptions options;
  options.scheduler.seed = seed;
  options.network.hosts = spread_over(ranks, hosts);
  return options;
}

TEST(SimWorld, ASplitWorksWithinItsColors) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SimWorld world(world_of(5, 2, seed));
    world.run([&](Communicator& comm) {
      auto half = comm.split({.color = comm.rank() % 2, .name = "half"});
      ASSERT_TRUE(half.has_value());
      std::vector<std::int32_t> data(100, comm.rank());
      half->all_reduce(std::span<std::int32_t>(data));
      EXPECT_EQ(data[99], comm.rank() % 2 == 0 ? 0 + 2 + 4 : 1 + 3);
      half->close();
      comm.barrier();
      comm.close();
    });
  }
}

TEST(SimWorld, ARankThatDiffersIsNamedOnAllRanks) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SimWorld world(world_of(3, 2, seed));
    int named = 0;
    world.run([&](Communicator& comm) {
      std::vector<std::int32_t> data(comm.rank() == 1 ? 10 : 11, 1);
      try {
        comm.all_reduce(std::span<std::int32_t>(data));
        ADD_FAILURE() << "rank " << comm.rank() << " saw no mismatch";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::mismatch) << error.what();
        EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 1"));
        ++named;
      }
    });
    EXPECT_EQ(named, 3);
  }
}

TEST(SimWorld, ARankThatNeverCallsIsNamedWhenTheDeadlinePasses) {
  WorldOptions options = world_of(3, 1, 4);
  options.deadline = 300'000'000;
  SimWorld world(options);
  world.run([&](Communicator& comm) {
    if (comm.rank() == 2) {
      world.scheduler().sleep(5'000'000'000);
      EXPECT_THROW(comm.check(), Error);
      return;
    }
    try {
      comm.barrier();
      ADD_FAILURE() << "the barrier ended without rank 2";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::deadline) << error.what();
      EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 2"));
    }
  });
}

TEST(SimWorld, ASilentRankIsAccusedAfterTheHeartbeat) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    WorldOptions options = world_of(4, 2, seed);
    options.deadline = 600'000'000'000;
    SimWorld world(options);
    Nanoseconds stopped = 0;
    world.scheduler().after(1'000'000'000, [&] {
      stopped = world.scheduler().now();
      world.stop(2);
    });
    world.run([&](Communicator& comm) {
      world.scheduler().sleep(2'000'000'000);
      if (comm.rank() == 2) return;
      try {
        comm.barrier();
        ADD_FAILURE() << "the barrier ended without rank 2";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::rank_failed) << error.what();
        EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 2"));
        // The heartbeat, and the interval of the beats, and of the looks.
        EXPECT_GE(world.scheduler().now() - stopped, 7'000'000'000);
        EXPECT_LE(world.scheduler().now() - stopped, 14'000'000'000);
      }
    });
  }
}

}  // namespace
}  // namespace rondo::testing
