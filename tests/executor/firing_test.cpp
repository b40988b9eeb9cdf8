// Scripts of short calls: what they hold, and which calls have one.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "algorithms/registry.hpp"
#include "executor/cpu/firing.hpp"

namespace rondo::executor {
namespace {

// Opens nothing: ends stay null.
class NoConnections final : public ConnectionSource {
 public:
  transport::SendEnd* open_send(int, std::uint32_t) override { return nullptr; }
  transport::ReceiveEnd* try_open_receive(int, std::uint32_t) override { return nullptr; }
  bool find_window(const std::byte*, std::size_t, transport::WindowReference&) override { return false; }
  const std::byte* peer_window(int, transport::WindowReference, std::size_t) override { return nullptr; }
};

// A float32 all_reduce of `count` elements among four ranks, seen by `rank`.
struct ShortCall {
  ShortCall(std::string_view algorithm, int rank, std::size_t count, std::size_t slice, std::size_t channels = 1) {
    const plan::Shape shape{Collective::all_reduce, 4, 0};
    const plan::RankPlan plan = algorithms::find(Collective::all_reduce, algorithm)->generate(shape, rank);
    for (std::size_t c = 0; c < channels; ++c) {
      owned.push_back(std::make_unique<BoundPlan>(plan, source, 0));
      bound.push_back(owned.back().get());
    }
    for (int b = 0; b < 2; ++b) tables[b] = ChunkTable::cut(count, static_cast<std::size_t>(plan.chunks[b]), 16);
    call.element = 4;
    call.slice = slice;
    call.tile = slices_a_tile * slice;
    call.tables[0] = &tables[0];
    call.tables[1] = &tables[1];
  }
  Script script() const { return Script(bound, call); }

  NoConnections source;
  std::vector<std::unique_ptr<BoundPlan>> owned;
  std::vector<BoundPlan*> bound;
  ChunkTable tables[2];
  Call call;
};

// 100 elements in four chunks of 32, 32, 32 and 4: two_shot's rank 1 sends chunks 2, 3 and 0, reduces and sends chunk
// 1, and stores chunks 0, 3 and 2 as they come from ranks 0, 3 and 2.
TEST(Script, HoldsEveryStepOfEveryLaneWithItsPlacesInTheBuffers) {
  const ShortCall two_shot("two_shot", 1, 100, 1000);
  const Script script = two_shot.script();
  ASSERT_FALSE(script.empty());
  const auto sent = script.lane(0);
  ASSERT_EQ(sent.size(), 3U);
  const std::size_t sent_chunks[] = {2, 3, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sent[i].sources[0].offset, sent_chunks[i] * 32 * 4);
    EXPECT_EQ(sent[i].bytes, sent_chunks[i] == 3 ? 16U : 128U);
    EXPECT_EQ(sent[i].sends.size(), 1U);
    EXPECT_FALSE(sent[i].stores || sent[i].computes);
  }
  const auto reduced = script.lane(1);
  ASSERT_EQ(reduced.size(), 1U);
  ASSERT_EQ(reduced[0].sources.size(), 4U);
  for (std::size_t q = 0; q < 4; ++q) EXPECT_EQ(reduced[0].sources[q].connection == nullptr, q == 1);
  EXPECT_EQ(reduced[0].sources[1].offset, 128U);
  EXPECT_TRUE(reduced[0].stores && reduced[0].computes);
  EXPECT_EQ(reduced[0].destination_offset, 128U);
  EXPECT_EQ(reduced[0].sends.size(), 3U);
  const auto stored = script.lane(2);
  ASSERT_EQ(stored.size(), 3U);
  const std::size_t stored_chunks[] = {0, 3, 2};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(stored[i].destination_offset, stored_chunks[i] * 128);
}

TEST(Script, UnrollsTheLoopsOfLanes) {
  const ShortCall ring("ring", 2, 100, 1000);
  const Script script = ring.script();
  ASSERT_FALSE(script.empty());
  for (std::size_t l = 0; l < ring.bound[0]->plan.lanes.size(); ++l) {
    std::size_t steps = 0;
    for (const plan::Block& block : ring.bound[0]->plan.lanes[l].blocks)
      steps += static_cast<std::size_t>(block.count) * block.steps.size();
    EXPECT_EQ(script.lane(l).size(), steps);
  }
}

TEST(Script, GivesEachChannelItsShareOfEveryChunk) {
  const ShortCall one_shot("one_shot", 0, 100, 1000, 2);
  const Script script = one_shot.script();
  ASSERT_FALSE(script.empty());
  EXPECT_EQ(script.lane(0)[0].count, 64U);  // half of 100, in whole cache lines
  EXPECT_EQ(script.lane(1)[0].count, 36U);
  EXPECT_EQ(script.lane(1)[0].sources[0].offset, 256U);
}

TEST(Script, ExistsOnlyWhereEveryStepIsOneSlice) {
  EXPECT_FALSE(ShortCall("one_shot", 0, 100, 100).script().empty());
  EXPECT_TRUE(ShortCall("one_shot", 0, 101, 100).script().empty());
  EXPECT_FALSE(ShortCall("one_shot", 0, 101, 100, 2).script().empty());
}

}  // namespace
}  // namespace rondo::executor
