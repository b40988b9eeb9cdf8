// Pins, and what is chosen without them.
#include "tuner/choice.hpp"

#include <rondo/error.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace rondo::tuner {
namespace {

std::string refusal(const char* text) {
  try {
    parse_pins(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::configuration);
    return error.what();
  }
  ADD_FAILURE() << text << " was accepted";
  return {};
}

TEST(Pins, AreReadInOrderWithTheirRanges) {
  const auto pins = parse_pins("all_reduce:0-4k=one_shot,4k-inf=ring;broadcast:1m-2m=chain");
  ASSERT_EQ(pins.size(), 3U);
  EXPECT_EQ(pins[0].collective, Collective::all_reduce);
  EXPECT_EQ(pins[0].from, 0U);
  EXPECT_EQ(pins[0].to, 4096U);
  EXPECT_EQ(pins[0].algorithm->name, "one_shot");
  EXPECT_EQ(pins[1].from, 4096U);
  EXPECT_EQ(pins[1].to, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(pins[1].algorithm->name, "ring");
  EXPECT_EQ(pins[2].collective, Collective::broadcast);
  EXPECT_EQ(pins[2].from, 1U << 20);
  EXPECT_EQ(pins[2].to, 2U << 20);
  EXPECT_TRUE(parse_pins("").empty());
}

TEST(Pins, ErrorsNameThePartThatIsWrong) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"all_reduce", "\"all_reduce\" has no ':'"},
      {"all_reduce:0-inf=ring;nonsense:0-inf=ring", "\"nonsense\" is no collective"},
      {"send:0-inf=ring", "\"send\" is no collective with algorithms"},
      {"all_reduce:", "names no range"},
      {"all_reduce:ring", "\"ring\" is not FROM-TO=ALGORITHM"},
      {"all_reduce:0-4k", "\"0-4k\" is not FROM-TO=ALGORITHM"},
      {"all_reduce:0-4k=one_shot,banana-inf=ring", "\"banana-inf\" is no range"},
      {"all_reduce:8k-4k=ring", "\"8k-4k\" is no range"},
      {"all_reduce:4k-4k=ring", "\"4k-4k\" is no range"},
      {"all_reduce:0-99999999999999999999g=ring", "is no range"},
      {"all_reduce:0-inf=chain", "all_reduce has no algorithm \"chain\"; it has one_shot, two_shot"},
      {"broadcast:0-inf=", "broadcast has no algorithm \"\""},
  };
  for (const auto& c : cases) {
    const std::string text = refusal(c.text);
    EXPECT_NE(text.find(c.says), std::string::npos) << text;
    EXPECT_NE(text.find("write for example"), std::string::npos) << text;
  }
}

TEST(Choice, APinHoldsFromItsFirstByteToBeforeItsLast) {
  Policy policy;
  policy.pins = parse_pins("all_reduce:100-200=ring,1m-inf=recursive_doubling");
  const plan::Shape shape{Collective::all_reduce, 4, 0};
  EXPECT_NE(choose(policy, shape, 99).name, "ring");
  EXPECT_EQ(choose(policy, shape, 100).name, "ring");
  EXPECT_EQ(choose(policy, shape, 199).name, "ring");
  EXPECT_NE(choose(policy, shape, 200).name, "ring");
  EXPECT_EQ(choose(policy, shape, std::numeric_limits<std::uint64_t>::max()).name, "recursive_doubling");
}

TEST(Choice, TheFirstPinThatFitsWins) {
  Policy policy;
  policy.pins = parse_pins("all_reduce:0-1k=ring,0-inf=two_shot");
  const plan::Shape shape{Collective::all_reduce, 4, 0};
  EXPECT_EQ(choose(policy, shape, 1).name, "ring");
  EXPECT_EQ(choose(policy, shape, 5000).name, "two_shot");
}

TEST(Choice, SmallMessagesTakeTheAlgorithmOfLowLatency) {
  const Policy policy;
  const auto name = [&](Collective c, int n, std::uint64_t bytes) { return choose(policy, {c, n, 0}, bytes).name; };
  EXPECT_EQ(name(Collective::all_reduce, 4, 8), "one_shot");
  EXPECT_EQ(name(Collective::all_reduce, 4, 1 << 20), "two_shot");
  EXPECT_EQ(name(Collective::reduce, 4, 8), "direct");
  EXPECT_EQ(name(Collective::reduce, 4, 1 << 20), "chain");
  EXPECT_EQ(name(Collective::broadcast, 4, 8), "direct");
  EXPECT_EQ(name(Collective::broadcast, 4, 1 << 20), "chain");
  EXPECT_EQ(name(Collective::barrier, 4, 0), "one_shot");
}

TEST(Choice, OverWiresSmallMessagesTakeTheAlgorithmOfFewMessages) {
  const Policy policy;
  const plan::Shape shape{Collective::all_reduce, 4, 0};
  EXPECT_EQ(choose(policy, shape, 8, Paths::wires).name, "recursive_doubling");
  EXPECT_EQ(choose(policy, shape, 1 << 20, Paths::wires).name, "two_shot");
  EXPECT_NE(explain(policy, shape, 8, Paths::wires), explain(policy, shape, 8, Paths::memory));
}

TEST(Choice, ExistsForEveryCollectiveSizeAndNumberOfRanks) {
  for (const bool deterministic : {false, true}) {
    Policy policy;
    policy.deterministic = deterministic;
    for (int c = 0; c <= static_cast<int>(Collective::scatter_v); ++c)
      for (const int n : {1, 2, 3, 16, 17, 33, 1000})
        for (const std::uint64_t bytes :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 12, ~std::uint64_t{0}})
          for (const Paths paths : {Paths::memory, Paths::wires}) {
            const plan::Shape shape{even_form(static_cast<Collective>(c)), n, 0};
            const auto& a = choose(policy, shape, bytes, paths);
            EXPECT_EQ(a.collective, shape.collective);
            EXPECT_TRUE(a.supports(shape));
            if (deterministic) {
              EXPECT_TRUE(a.rank_ordered) << a.name;
            }
          }
  }
}

TEST(Choice, ADeterministicPolicyRefusesAPinThatIsNot) {
  Policy policy;
  policy.deterministic = true;
  policy.pins = parse_pins("all_reduce:0-inf=ring;all_gather:0-inf=ring");
  try {
    choose(policy, {Collective::all_reduce, 4, 0}, 100);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::configuration);
    EXPECT_NE(std::string(error.what()).find("ring, which is not deterministic"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("use one of one_shot, two_shot)"), std::string::npos) << error.what();
  }
  // Copies are the same bits by any way.
  EXPECT_EQ(choose(policy, {Collective::all_gather, 4, 0}, 100).name, "ring");
}

TEST(Choice, ExplainsEveryCandidate) {
  Policy policy;
  policy.deterministic = true;
  const std::string text = explain(policy, {Collective::all_reduce, 4, 0}, 100);
  for (const char* name : {"one_shot", "two_shot", "recursive_doubling", "ring", "chosen", "not deterministic", "us"})
    EXPECT_NE(text.find(name), std::string::npos) << text;
}

}  // namespace
}  // namespace rondo::tuner
