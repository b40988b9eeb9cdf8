#include "plan/builder.hpp"

#include "algorithms/registry.hpp"
#include "plan/checker.hpp"

#include <gtest/gtest.h>
#include <rondo/error.hpp>

namespace rondo::plan {
namespace {

constexpr Shape shape_of(std::int32_t n) { return {Collective::all_reduce, n, 0}; }

TEST(Builder, TakesChunksAndPeersModulo) {
  Builder plan("x", shape_of(4), 0, {.input = 4, .output = 4});
  LaneBuilder lane = plan.lane();
  const ConnectionEnd from = lane.from(-1), to = lane.to(5);
  lane.loop(3, [&](LaneBuilder& body, Index j) { body.step().receive(from).local(input, -2 - j).send(to); });
  const RankPlan built = plan.build();
  EXPECT_EQ(built.connections[0].peer, 3);
  EXPECT_EQ(built.connections[1].peer, 1);
  const Step& step = built.lanes[0].blocks[0].steps[0];
  EXPECT_EQ(step.operands[1].chunk, (ChunkRef{Buffer::input, 2, -1}));
  EXPECT_EQ(built.chunk_at(step.operands[1].chunk, 2), 0);
  EXPECT_EQ(built.chunk_at(step.operands[1].chunk, 3), 3);
}

TEST(Builder, ExtentIsDestinationElseFirstLocalOperandUnlessNamed) {
  Builder plan("x", shape_of(2), 0, {.input = 4, .output = 4, .scratch = 1});
  LaneBuilder lane = plan.lane();
  lane.step().local(input, 1).store(output, 2);
  lane.step().local(input, 1).local(input, 3);
  lane.step().local(input, 1).store(scratch, 0);
  lane.step().extent(output, 3).local(input, 1).store(output, 2);
  const RankPlan built = plan.build();
  const auto& steps = built.lanes[0].blocks[0].steps;
  EXPECT_EQ(steps[0].extent, (ChunkRef{Buffer::output, 2, 0}));
  EXPECT_EQ(steps[1].extent, (ChunkRef{Buffer::input, 1, 0}));
  EXPECT_EQ(steps[2].extent, (ChunkRef{Buffer::input, 1, 0}));
  EXPECT_EQ(steps[3].extent, (ChunkRef{Buffer::output, 3, 0}));
}

TEST(Builder, LeavesOutEmptyLoopsAndKeepsStepsAfterALoopOutOfIt) {
  Builder plan("x", shape_of(2), 0, {.input = 2, .output = 2});
  LaneBuilder lane = plan.lane();
  lane.loop(0, [&](LaneBuilder& body, Index) { body.step().local(input, 0); });
  lane.loop(1, [&](LaneBuilder& body, Index) { body.step().local(input, 0); });
  lane.step().local(input, 1);
  const RankPlan built = plan.build();
  ASSERT_EQ(built.lanes[0].blocks.size(), 2U);
  EXPECT_EQ(built.lanes[0].blocks[0].count, 1);
  EXPECT_EQ(built.lanes[0].blocks[1].steps[0].operands[0].chunk.base, 1);
}

TEST(Builder, RefusesStepsWithoutExtentTwinEndsAndMissingBuffers) {
  {
    Builder plan("x", shape_of(2), 0, {});
    LaneBuilder lane = plan.lane();
    const ConnectionEnd from = lane.from(1), to = lane.to(1);
    lane.step().receive(from).send(to);
    EXPECT_THROW(plan.build(), Error);
  }
  {
    Builder plan("x", shape_of(2), 0, {});
    LaneBuilder lane = plan.lane();
    lane.to(1);
    lane.to(1);
    EXPECT_THROW(plan.build(), Error);
  }
  Builder plan("x", shape_of(2), 0, {.input = 1, .output = 0});
  LaneBuilder lane = plan.lane();
  EXPECT_THROW(lane.step().local(input, 0).store(output, 0), Error);
  EXPECT_THROW(Builder("x", shape_of(2), 2, {}), Error);
}

// Each loop written out turn by turn.
RankPlan unrolled(RankPlan plan) {
  for (Lane& lane : plan.lanes) {
    Block flat;
    const auto fix = [&](ChunkRef& ref, std::int32_t j) { ref = {ref.buffer, plan.chunk_at(ref, j), 0}; };
    for (const Block& block : lane.blocks)
      for (std::int32_t j = 0; j < block.count; ++j)
        for (Step step : block.steps) {
          for (Operand& operand : step.operands)
            if (operand.kind == Operand::Kind::local) fix(operand.chunk, j);
          if (step.destination) fix(*step.destination, j);
          fix(step.extent, j);
          flat.steps.push_back(step);
        }
    lane.blocks = {flat};
  }
  return plan;
}

// The ring's chunks by hand, from its description: chunk c starts at rank c + 1 and goes round twice.
TEST(Builder, RingLoopsUnrollToTheRing) {
  const auto* ring = algorithms::find(Collective::all_reduce, "ring");
  for (const std::int32_t n : {2, 3, 5, 9}) {
    std::vector<RankPlan> flat;
    for (std::int32_t r = 0; r < n; ++r) {
      flat.push_back(unrolled(ring->generate(shape_of(n), r)));
      const auto& steps = flat.back().lanes[0].blocks[0].steps;
      ASSERT_EQ(steps.size(), static_cast<std::size_t>(2 * n - 1));
      for (std::int32_t s = 0; s < 2 * n - 1; ++s)
        EXPECT_EQ(steps[static_cast<std::size_t>(s)].extent.base, (r - 1 - s + 2 * n) % n);
    }
    const CheckResult result = check_plan(flat);
    EXPECT_TRUE(result.ok()) << result.message;
  }
}

}  // namespace
}  // namespace rondo::plan
