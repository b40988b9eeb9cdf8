// The checker refuses broken plans: built-in ones with one thing changed, each with the violation that it is.
#include "plan/checker.hpp"

#include "algorithms/registry.hpp"
#include "plan/builder.hpp"

#include <gtest/gtest.h>
#include <functional>
#include <utility>

namespace rondo::plan {
namespace {

std::vector<RankPlan> plans_of(Collective collective, std::string_view name, std::int32_t n, std::int32_t root = 0) {
  return generate_all(algorithms::find(collective, name)->generate, {collective, n, root});
}

Step& step_of(RankPlan& plan, std::size_t lane, std::size_t block, std::size_t step) {
  return plan.lanes.at(lane).blocks.at(block).steps.at(step);
}

using Ranks = std::vector<RankPlan>;

void expect(Violation violation, const Ranks& plans, std::int32_t rank = -1) {
  const CheckResult result = check_plan(plans);
  EXPECT_EQ(name_of(result.violation), name_of(violation)) << result.message;
  if (violation == Violation::none) return;
  EXPECT_NE(result.message.find(name_of(violation)), std::string::npos) << result.message;
  if (rank >= 0) {
    EXPECT_EQ(result.rank, rank) << result.message;
    EXPECT_NE(result.message.find("rank " + std::to_string(rank)), std::string::npos) << result.message;
  }
}

TEST(Mutation, DroppedStepLeavesMessagesUnbalanced) {
  auto plans = plans_of(Collective::all_reduce, "ring", 4);
  plans[2].lanes[0].blocks.back().steps.pop_back();
  expect(Violation::balance, plans, 2);
}

TEST(Mutation, MissingReceiveIsUnbalanced) {
  auto plans = plans_of(Collective::all_reduce, "one_shot", 4);
  step_of(plans[1], 0, 0, 1).operands.pop_back();
  expect(Violation::balance, plans, 1);
}

TEST(Mutation, MissingOperandIsAnIncompleteReductionThatNamesWhatIsMissing) {
  auto plans = plans_of(Collective::all_reduce, "one_shot", 4);
  auto& operands = step_of(plans[2], 0, 0, 1).operands;
  operands.erase(operands.begin() + 2);  // its own input
  expect(Violation::finish, plans, 2);
  EXPECT_NE(check_plan(plans).message.find("chunk 0 of rank 2"), std::string::npos) << check_plan(plans).message;
}

TEST(Mutation, MissingOperandOfABarrierIsAWrongResult) {
  auto plans = plans_of(Collective::barrier, "one_shot", 3);
  auto& operands = step_of(plans[1], 0, 0, 1).operands;
  operands.erase(operands.begin() + 1);
  expect(Violation::wrong_result, plans, 1);
}

TEST(Mutation, SwappedOperandsAreNotRankOrdered) {
  auto plans = plans_of(Collective::all_reduce, "two_shot", 4);
  auto& operands = step_of(plans[3], 1, 0, 0).operands;
  std::swap(operands[0], operands[1]);
  expect(Violation::rank_order, plans);
  for (RankPlan& plan : plans) plan.rank_ordered = false;
  expect(Violation::none, plans);
}

TEST(Mutation, WrongChunkDiffersInLength) {
  auto plans = plans_of(Collective::all_reduce, "ring", 5);
  step_of(plans[1], 0, 1, 0).operands[1].chunk.base = 0;
  expect(Violation::length, plans, 1);
}

TEST(Mutation, WrongChunkAndExtentDisagreeWithTheMessage) {
  auto plans = plans_of(Collective::all_gather, "ring", 4);
  Step& last = plans[3].lanes[0].blocks.back().steps.back();
  last.destination->base = last.extent.base = (last.extent.base + 1) % 4;
  expect(Violation::length, plans, 3);
}

TEST(Mutation, WrongSourceOfTheRightLengthIsAWrongResult) {
  // Rank 1 stores its own input where rank 0's belongs: all chunks of all_reduce and broadcast have one length a chunk.
  auto plans = plans_of(Collective::barrier, "recursive_doubling", 4);
  step_of(plans[1], 0, 0, 2).operands[1].chunk.buffer = Buffer::input;
  step_of(plans[1], 0, 0, 2).operands[0].chunk.buffer = Buffer::input;
  expect(Violation::wrong_result, plans);
}

TEST(Mutation, DuplicatedOperandCountsTwice) {
  auto plans = plans_of(Collective::all_reduce, "one_shot", 3);
  auto& operands = step_of(plans[1], 0, 0, 1).operands;
  operands.push_back(operands[1]);
  const CheckResult result = check_plan(plans);
  EXPECT_EQ(result.violation, Violation::double_count) << result.message;
  EXPECT_NE(result.message.find("chunk 0 of rank 1"), std::string::npos) << result.message;
}

TEST(Mutation, DuplicatedReceiveIsRefused) {
  auto plans = plans_of(Collective::all_reduce, "one_shot", 3);
  auto& operands = step_of(plans[1], 0, 0, 1).operands;
  operands.push_back(operands[0]);
  expect(Violation::structure, plans, 1);
}

TEST(Mutation, TooFewSlotsDeadlock) {
  auto plans = plans_of(Collective::all_reduce, "ring", 4);
  for (RankPlan& plan : plans)
    for (Connection& connection : plan.connections) connection.slots_min = 1;
  const CheckResult result = check_plan(plans);
  EXPECT_EQ(result.violation, Violation::deadlock) << result.message;
  EXPECT_NE(result.message.find("waits for one of 1 slots"), std::string::npos) << result.message;
}

TEST(Mutation, ReceiveBeforeSendDeadlocks) {
  auto plans = plans_of(Collective::all_reduce, "one_shot", 3);
  for (RankPlan& plan : plans) std::swap(step_of(plan, 0, 0, 0), step_of(plan, 0, 0, 1));
  const CheckResult result = check_plan(plans);
  EXPECT_EQ(result.violation, Violation::deadlock) << result.message;
  EXPECT_NE(result.message.find("waits for a message of rank"), std::string::npos) << result.message;
}

TEST(Mutation, FinishMissingTwiceOrEarly) {
  auto plans = plans_of(Collective::reduce_scatter, "direct", 3);
  step_of(plans[1], 1, 0, 0).finish = false;
  expect(Violation::finish, plans, 1);

  plans = plans_of(Collective::all_reduce, "ring", 3);
  plans[2].lanes[0].blocks.back().steps.back().finish = true;
  expect(Violation::finish, plans, 2);

  plans = plans_of(Collective::all_reduce, "ring", 4);
  step_of(plans[1], 0, 1, 0).finish = true;
  expect(Violation::finish, plans);

  plans = plans_of(Collective::broadcast, "direct", 3);
  step_of(plans[1], 0, 0, 0).finish = true;
  expect(Violation::finish, plans, 1);
}

// In place, output overwrites the input that another lane has yet to send: one-shot needs its single lane.
TEST(Mutation, SendsAndReductionInTwoLanesRaceInPlace) {
  auto plans = plans_of(Collective::all_reduce, "one_shot", 3);
  for (RankPlan& plan : plans) {
    Step reduce = step_of(plan, 0, 0, 1);
    plan.lanes[0].blocks[0].steps.pop_back();
    plan.lanes.push_back(Lane{{Block{1, {reduce}}}});
    for (Connection& connection : plan.connections)
      if (connection.direction == Direction::incoming) connection.lane = 1;
  }
  expect(Violation::race, plans);
  // An `after` orders them.
  for (RankPlan& plan : plans) step_of(plan, 1, 0, 0).after.push_back({0, 0, 0});
  expect(Violation::none, plans);
}

// A reference to what is overwritten while the peer may still read it.
TEST(Mutation, ReferencesToOverwrittenMemoryRace) {
  for (const auto& [collective, name] :
       {std::pair{Collective::all_reduce, "one_shot"}, std::pair{Collective::all_reduce, "recursive_doubling"},
        std::pair{Collective::all_to_all, "direct"}}) {
    auto plans = plans_of(collective, name, 4);
    for (RankPlan& plan : plans)
      for (Connection& connection : plan.connections) connection.direct = true;
    expect(Violation::race, plans);
  }
}

TEST(Mutation, AllToAllThatReceivesBeforeItSendsIsWrongInPlace) {
  auto plans = plans_of(Collective::all_to_all, "direct", 3);
  // Rank 0 takes rank 1's chunk before it sends its own chunk 1.
  auto& steps = plans[0].lanes[0].blocks[0].steps;
  const auto position = [&](bool receives) {
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const bool is_receive = steps[s].operands[0].kind == Operand::Kind::receive;
      if (is_receive == receives && steps[s].extent.base == 1) return s;
    }
    return steps.size();
  };
  std::swap(steps.at(position(true)), steps.at(position(false)));
  expect(Violation::wrong_result, plans);
}

TEST(Mutation, EndsMustPair) {
  auto plans = plans_of(Collective::broadcast, "chain", 4);
  plans[1].connections[0].tag = 7;
  expect(Violation::pairing, plans);
  plans = plans_of(Collective::broadcast, "chain", 4);
  plans[1].connections[0].slots_min = 3;
  expect(Violation::pairing, plans, 1);
  plans = plans_of(Collective::broadcast, "chain", 4);
  plans[1].connections[0].direct = false;
  expect(Violation::pairing, plans, 1);
}

TEST(Mutation, IndicesOutOfRangeAreRefusedNotFollowed) {
  const std::vector<std::function<void(RankPlan&)>> breaks = {
      [](RankPlan& p) { step_of(p, 0, 0, 0).operands[0].chunk.base = 4; },
      [](RankPlan& p) { step_of(p, 0, 0, 0).operands[0].chunk.base = -1; },
      [](RankPlan& p) { step_of(p, 0, 0, 0).operands[0].chunk.stride = 4; },
      [](RankPlan& p) { step_of(p, 0, 0, 0).operands[0].chunk.buffer = static_cast<Buffer>(9); },
      [](RankPlan& p) { step_of(p, 0, 0, 0).operands[0].chunk.buffer = Buffer::scratch; },
      [](RankPlan& p) { step_of(p, 0, 0, 0).operands.clear(); },
      [](RankPlan& p) { step_of(p, 0, 0, 0).sends[0].connection = 2; },
      [](RankPlan& p) { step_of(p, 0, 0, 0).sends[0].connection = 0; },
      [](RankPlan& p) { step_of(p, 0, 0, 0).drain.push_back(-1); },
      [](RankPlan& p) {
        step_of(p, 0, 0, 0).after.push_back({0, 1000, 0});
      },
      [](RankPlan& p) {
        step_of(p, 0, 0, 0).after.push_back({1, 0, 0});
      },
      [](RankPlan& p) { step_of(p, 0, 0, 0).extent.base = 9; },
      [](RankPlan& p) {
        step_of(p, 0, 0, 0).destination = ChunkRef{Buffer::input, 0, 0};
      },
      [](RankPlan& p) { p.lanes[0].blocks[1].count = 0; },
      [](RankPlan& p) { p.lanes[0].blocks[1].count = 2147483647; },
      [](RankPlan& p) { p.connections[0].peer = 4; },
      [](RankPlan& p) { p.connections[0].lane = 1; },
      [](RankPlan& p) { p.connections[0].slots_min = 0; },
      [](RankPlan& p) { p.chunks[0] = 5; },
      [](RankPlan& p) { p.rank = 0; },
      [](RankPlan& p) { p.size = 5; },
      [](RankPlan& p) { p.scratch_tiles = 0; },
      [](RankPlan& p) { p.root = 4; },
      [](RankPlan& p) { p.name = "other"; },
      [](RankPlan& p) { p.collective = Collective::send; },
  };
  for (std::size_t i = 0; i < breaks.size(); ++i) {
    auto plans = plans_of(Collective::all_reduce, "ring", 4);
    breaks[i](plans[2]);
    EXPECT_EQ(check_plan(plans).violation, Violation::structure) << i << ": " << check_plan(plans).message;
  }
  EXPECT_EQ(check_plan({}).violation, Violation::structure);
}

// Every single change of a step of a small plan must be noticed: no step is idle.
TEST(Mutation, NoStepOfAnyAlgorithmCanBeLeftOut) {
  for (const algorithms::Algorithm& a : algorithms::all())
    for (const std::int32_t n : {2, 3, 5, 6}) {
      const auto plans = generate_all(a.generate, {a.collective, n, 1});
      for (std::size_t r = 0; r < plans.size(); ++r)
        for (std::size_t l = 0; l < plans[r].lanes.size(); ++l)
          for (std::size_t b = 0; b < plans[r].lanes[l].blocks.size(); ++b)
            for (std::size_t s = 0; s < plans[r].lanes[l].blocks[b].steps.size(); ++s) {
              auto broken = plans;
              auto& steps = broken[r].lanes[l].blocks[b].steps;
              steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(s));
              EXPECT_FALSE(check_plan(broken).ok()) << a.name << " " << name_of(a.collective) << " rank " << r
                                                    << " lane " << l << " block " << b << " step " << s;
            }
    }
}

// Two ranks swap accumulators through two scratch halves; tile t + D reuses the scratch of tile t.
Ranks scratch_plan(std::int32_t scratch_tiles, bool drain) {
  const Shape shape{Collective::all_reduce, 2, 0};
  return generate_all(
      [&](const Shape&, std::int32_t r) {
        Builder plan("scratch", shape, r, {.input = 1, .output = 1, .scratch = 1});
        LaneBuilder lane = plan.lane();
        const ConnectionEnd to = lane.to(r + 1, {.tag = 0, .slots_min = 2, .direct = true});
        const ConnectionEnd from = lane.from(r + 1, {.tag = 0, .slots_min = 2, .direct = true});
        auto copy = lane.step();
        if (drain) copy.drain(to);
        copy.local(input, 0).store(scratch, 0).send(to);
        lane.step().receive(from).local(scratch, 0).store(output, 0).finish();
        RankPlan result = plan.build();
        result.scratch_tiles = scratch_tiles;
        return result;
      },
      shape);
}

// With one half, nothing says that the peer has read it; with two, its next message does.
TEST(Scratch, ReuseWhileThePeerReadsByReferenceRacesUnlessDrainedOrDoubled) {
  expect(Violation::race, scratch_plan(1, false));
  for (const std::int32_t tiles : {1, 2, 3}) {
    expect(Violation::none, scratch_plan(tiles, true));
    EXPECT_EQ(check_plan(scratch_plan(tiles, true)).tiles, tiles + 1);
  }
  expect(Violation::none, scratch_plan(2, false));
  expect(Violation::none, scratch_plan(3, false));
}

// Rank 0's lane 1 reads output chunk 0 that lane 0 wrote; only messages about chunk 1 order the two. If chunk 0 is the
// longer one, its last tile comes without them.
TEST(UnevenChunks, OrderThatHangsOnAnotherChunkRaces) {
  const auto plans = generate_all(
      [](const Shape& shape, std::int32_t r) {
        Builder plan("uneven", shape, r, {.input = 1, .output = 2});
        LaneBuilder first = plan.lane();
        if (r == 0) {
          LaneBuilder second = plan.lane();
          first.step().local(input, 0).store(output, 0);
          first.step().receive(first.from(1, {.tag = 0})).store(output, 1).send(first.to(1, {.tag = 1}));
          second.step().receive(second.from(1, {.tag = 2})).store(output, 1);
          second.step().local(output, 0).send(second.to(1, {.tag = 3}));
        } else {
          first.step().local(input, 0).store(output, 1).send(first.to(0, {.tag = 0}));
          first.step().receive(first.from(0, {.tag = 1})).store(output, 1).send(first.to(0, {.tag = 2}));
          first.step().receive(first.from(0, {.tag = 3})).store(output, 0);
        }
        return plan.build();
      },
      {Collective::all_gather, 2, 0});
  expect(Violation::race, plans, 0);
  EXPECT_NE(check_plan(plans).message.find("uneven"), std::string::npos) << check_plan(plans).message;
}

TEST(Checker, ReadingOutputThatNothingWroteIsUndefined) {
  auto plans = plans_of(Collective::all_reduce, "one_shot", 2);
  step_of(plans[1], 0, 0, 0).operands[0].chunk.buffer = Buffer::output;
  expect(Violation::undefined, plans, 1);
}

TEST(Checker, TooLargeIsSaidNotTried) {
  const auto plans = plans_of(Collective::all_reduce, "ring", 8);
  const CheckResult result = check_plan(plans, {.tiles = 0, .max_steps = 100});
  EXPECT_EQ(result.violation, Violation::structure);
  EXPECT_NE(result.message.find("100"), std::string::npos) << result.message;
}

}  // namespace
}  // namespace rondo::plan
