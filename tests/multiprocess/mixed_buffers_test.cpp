// Ranks that mix plain, window and in-place buffers at random offsets get right values from every algorithm.
#include "multiprocess/job.hpp"

#include <tuple>

namespace rondo::test {
namespace {

// Pins that between them run every built-in algorithm.
struct Pins {
  const char* name;
  const char* text;
};
constexpr Pins pins[] = {
    {"chosen", ""},
    {"ring",
     "all_reduce:0-inf=ring;all_gather:0-inf=ring;reduce_scatter:0-inf=ring;broadcast:0-inf=ring;reduce:0-inf=ring"},
    {"direct",
     "all_reduce:0-inf=two_shot;all_gather:0-inf=direct;reduce_scatter:0-inf=direct;broadcast:0-inf=direct;"
     "reduce:0-inf=direct;barrier:0-inf=one_shot"},
    {"chain",
     "all_reduce:0-inf=recursive_doubling;broadcast:0-inf=chain;reduce:0-inf=chain;barrier:0-inf=recursive_doubling"},
    {"tree",
     "all_reduce:0-inf=double_binary_tree;all_gather:0-inf=bruck;broadcast:0-inf=binomial_tree;reduce:0-inf=binomial_"
     "tree"},
    {"halving_doubling", "all_reduce:0-inf=halving_doubling"},
    {"one_shot", "all_reduce:0-inf=one_shot"},
};
void PrintTo(const Pins& which, std::ostream* out) { *out << which.name; }

void expect_right(int ranks, const Pins& which, const char* transports, int seed, int rounds) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Job job(ranks, {program("mixed_buffers"), std::to_string(seed), std::to_string(rounds)},
          {std::string("RONDO_ALGO=") + which.text, std::string("RONDO_TRANSPORTS=") + transports});
  EXPECT_EQ(job.finish(), 0) << job.story();
  EXPECT_EQ(count(job.text(), "RIGHT"), ranks) << job.story();
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<Pins, int, const char*>>& which) {
  return std::string(std::get<0>(which.param).name) + "_" + std::to_string(std::get<1>(which.param)) + "_ranks_" +
         (std::string(std::get<2>(which.param)) == "tcp" ? "tcp" : "shm");
}

class MixedBuffers : public testing::TestWithParam<std::tuple<Pins, int, const char*>> {};
TEST_P(MixedBuffers, GiveRightValues) {
  const auto& [which, ranks, transports] = GetParam();
  for (int seed = 1; seed <= 2; ++seed) expect_right(ranks, which, transports, seed * 10 + ranks, 150);
}
INSTANTIATE_TEST_SUITE_P(Everyday, MixedBuffers,
                         testing::Combine(testing::ValuesIn(pins), testing::Values(2, 3, 4),
                                          testing::Values("shm,tcp", "tcp")),
                         name_of_case);

class MixedBuffersLong : public testing::TestWithParam<std::tuple<Pins, int, const char*>> {};
TEST_P(MixedBuffersLong, GiveRightValuesForManySeeds) {
  const auto& [which, ranks, transports] = GetParam();
  for (int seed = 100; seed < 140; ++seed) expect_right(ranks, which, transports, seed, 500);
}
INSTANTIATE_TEST_SUITE_P(All, MixedBuffersLong,
                         testing::Combine(testing::ValuesIn(pins), testing::Values(2, 3, 4, 7),
                                          testing::Values("shm,tcp", "tcp")),
                         name_of_case);

}  // namespace
}  // namespace rondo::test
