// Sends and receives in simulation: values, any source, no wait that sleeps through a message.
#include "sim/sim_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace rondo::testing {
namespace {

constexpr Nanoseconds nap = 5'000'000;  // the engine's: a call that takes as long slept through a wake-up

// The matcher wakes others while it holds its mutex, so nobody may give way there.
WorldOptions world_of(int ranks, std::uint64_t seed) {
  WorldOptions options;
  options.scheduler.seed = seed;
  options.scheduler.preempt_one_in = 0;
  options.network.hosts = spread_over(ranks, static_cast<int>(1 + seed % static_cast<std::uint64_t>(ranks)));
  options.network.ring_when_armed = seed / 2 % 2 == 0;
  return options;
}

TEST(SimPointToPoint, ARingOfSendsArrivesWithoutANap) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SimWorld world(world_of(2 + static_cast<int>(seed % 4), seed));
    Nanoseconds longest = 0;
    world.run([&](Communicator& comm) {
      const int next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
      for (const std::size_t count : {std::size_t{1}, std::size_t{10}, std::size_t{3000}, std::size_t{40000}}) {
        const std::vector<std::int32_t> out(count, comm.rank() + 1);
        std::vector<std::int32_t> in(count);
        const Stream stream;
        const Nanoseconds began = world.scheduler().now();
        const Work sent = comm.send(out.data(), count, DataType::int32, next, 3, {.stream = &stream});
        comm.receive(in.data(), count, DataType::int32, previous, 3);
        sent.wait();
        longest = std::max(longest, world.scheduler().now() - began);
        EXPECT_EQ(in.front(), previous + 1);
        EXPECT_EQ(in.back(), previous + 1);
      }
      comm.close();
    });
    EXPECT_LT(longest, nap) << "seed " << seed;
  }
}

TEST(SimPointToPoint, AReceiveFromAnyRankTakesEachOnce) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SimWorld world(world_of(4, seed));
    Nanoseconds longest = 0;
    world.run([&](Communicator& comm) {
      const Nanoseconds began = world.scheduler().now();
      if (comm.rank() == 0) {
        std::set<std::int64_t> seen;
        for (int i = 1; i < comm.size(); ++i) {
          std::vector<std::int64_t> in(700);
          comm.receive(in.data(), in.size(), DataType::int64, any_source, 8);
          EXPECT_EQ(in.front(), in.back());
          seen.insert(in.front());
        }
        EXPECT_EQ(seen, (std::set<std::int64_t>{1, 2, 3}));
      } else {
        const std::vector<std::int64_t> out(700, comm.rank());
        comm.send(out.data(), out.size(), DataType::int64, 0, 8);
      }
      longest = std::max(longest, world.scheduler().now() - began);
      comm.close();
    });
    EXPECT_LT(longest, nap) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rondo::testing
