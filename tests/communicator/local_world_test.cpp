// Collectives among ranks that are threads of one process.
#include <cstdint>
#include <vector>

#include "communicator/ranks.hpp"

namespace rondo {
namespace {

TEST(LocalWorld, AllReduceSumsOverRanks) {
  for (const int n : {1, 2, 3, 5})
    with_ranks(n, [&](Communicator& comm) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{100}, std::size_t{5000}, std::size_t{300000}}) {
        std::vector<float> data(count);
        for (std::size_t i = 0; i < count; ++i)
          data[i] = static_cast<float>(comm.rank() + 1) + static_cast<float>(i % 7);
        comm.all_reduce(std::span<float>(data));
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(data[i], static_cast<float>(n * (n + 1) / 2) + static_cast<float>(n) * static_cast<float>(i % 7));
      }
      comm.barrier();
    });
}

TEST(LocalWorld, RanksKnowTheirPlaceAndName) {
  Config config = test_config();
  config.name = "trainers";
  std::vector<int> seen(3, -1);
  with_ranks(
      3,
      [&](Communicator& comm) {
        EXPECT_EQ(comm.size(), 3);
        EXPECT_EQ(comm.name(), "trainers");
        seen[static_cast<std::size_t>(comm.rank())] = comm.rank();
      },
      config);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
}

TEST(LocalWorld, RefusesFewerThanOneRank) {
  EXPECT_EQ(code_of([] { Communicator::create_local(0); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { Communicator::create_local(-3); }), ErrorCode::invalid_argument);
}

TEST(LocalWorld, AnEmptyCommunicatorSaysHowToMakeOne) {
  Communicator empty;
  EXPECT_EQ(empty.rank(), -1);
  EXPECT_EQ(empty.size(), 0);
  std::string text;
  EXPECT_EQ(code_of([&] { empty.barrier(); }, &text), ErrorCode::invalid_usage);
  EXPECT_NE(text.find("create_local"), std::string::npos) << text;
}

}  // namespace
}  // namespace rondo
