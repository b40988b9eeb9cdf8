// Builder: how a generator writes one rank's share of a plan. A ring's reduce-scatter, whole:
//
//   Builder plan("ring", shape, rank, {.input = n, .output = 1});
//   LaneBuilder lane = plan.lane();
//   const ConnectionEnd from = lane.from(rank - 1), to = lane.to(rank + 1);
//   lane.step().local(input, rank - 1).send(to);
//   lane.loop(n - 2, [&](LaneBuilder& body, Index j) {
//     body.step().receive(from).local(input, rank - 2 - j).send(to);
//   });
//   lane.step().receive(from).local(input, rank).store(output, 0).finish();
//   return plan.build();
//
// Peers are modulo the number of ranks, chunks modulo the chunks of their buffer. A loop costs the same whatever its
// count. A step's extent is its destination, else its first local operand (scratch has no length of its own), unless
// extent() names another; a step that has neither must name one.
//
// Lanes and steps are handles into the Builder and must not outlive it. One thread. Errors: rondo::Error(plan) for a
// chunk of a buffer that has none, for a second end of the same connection, and for a step without an extent.
#pragma once

#include "plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rondo::plan {

// base + stride * j, where j counts the repetitions of the enclosing loop. Integers convert.
struct Index {
  std::int64_t base = 0;
  std::int64_t stride = 0;
  constexpr Index(std::int64_t value) : base(value) {}  // NOLINT(google-explicit-constructor): an integer is an index
  constexpr Index(std::int64_t value, std::int64_t step) : base(value), stride(step) {}
  friend constexpr Index operator+(Index a, Index b) { return {a.base + b.base, a.stride + b.stride}; }
  friend constexpr Index operator-(Index a, Index b) { return {a.base - b.base, a.stride - b.stride}; }
};

inline constexpr Buffer input = Buffer::input;
inline constexpr Buffer output = Buffer::output;
inline constexpr Buffer scratch = Buffer::scratch;

// One end of a connection: an index into RankPlan::connections.
struct ConnectionEnd {
  std::int32_t index = -1;
};

struct ConnectionOptions {
  std::int32_t tag = 0;
  std::int32_t slots_min = 1;
  bool direct = false;
};

struct ChunkCounts {
  std::int32_t input = 1;
  std::int32_t output = 1;
  std::int32_t scratch = 0;
};

class Builder;

class StepBuilder {
 public:
  // Operands, in the order of reduction.
  StepBuilder& local(Buffer buffer, Index chunk);
  StepBuilder& receive(ConnectionEnd from);
  StepBuilder& store(Buffer buffer, Index chunk);
  // Without flush the doorbell waits for a later send on the same connection.
  StepBuilder& send(ConnectionEnd to, bool flush = true);
  StepBuilder& drain(ConnectionEnd to);
  StepBuilder& after(std::int32_t lane, std::int32_t step, std::int32_t lag = 0);
  StepBuilder& extent(Buffer buffer, Index chunk);
  // Marks the result as the complete reduction.
  StepBuilder& finish();

 private:
  friend class LaneBuilder;
  enum class ExtentFrom : std::uint8_t { nothing, operand, destination, caller };
  StepBuilder(Builder& builder, std::size_t lane, std::size_t block, std::size_t step)
      : builder_(&builder), lane_(lane), block_(block), step_(step) {}
  Step& step();
  ChunkRef chunk(Buffer buffer, Index index) const;
  void offer_extent(const ChunkRef& ref, ExtentFrom from);

  Builder* builder_;
  std::size_t lane_;
  std::size_t block_;
  std::size_t step_;
  ExtentFrom extent_from_ = ExtentFrom::nothing;
};

class LaneBuilder {
 public:
  // Connection ends of this lane; `peer` is modulo the number of ranks.
  ConnectionEnd from(std::int64_t peer, const ConnectionOptions& options = {});
  ConnectionEnd to(std::int64_t peer, const ConnectionOptions& options = {});
  StepBuilder step();
  // body(LaneBuilder&, Index j) adds the steps that are run `count` times, j = 0 .. count - 1. Nothing for count <= 0.
  // Loops don't nest.
  template <class Body>
  void loop(std::int64_t count, Body&& body) {
    if (count <= 0) return;
    begin_loop(count);
    body(*this, Index(0, 1));
    in_loop_ = false;
  }
  std::int32_t index() const { return static_cast<std::int32_t>(lane_); }

 private:
  friend class Builder;
  LaneBuilder(Builder& builder, std::size_t lane) : builder_(&builder), lane_(lane) {}
  ConnectionEnd end(Direction direction, std::int64_t peer, const ConnectionOptions& options);
  void begin_loop(std::int64_t count);

  Builder* builder_;
  std::size_t lane_;
  bool in_loop_ = false;
};

class Builder {
 public:
  Builder(std::string_view name, const Shape& shape, std::int32_t rank, const ChunkCounts& chunks,
          bool rank_ordered = false);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  LaneBuilder lane();
  RankPlan build();

 private:
  friend class LaneBuilder;
  friend class StepBuilder;
  RankPlan plan_;
};

}  // namespace rondo::plan
