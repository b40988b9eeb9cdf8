// The representation that every collective is compiled to. See docs/plans.md for the semantics and the proofs.
//
// A RankPlan is one rank's share of a plan: its lanes and the ends of its connections. A whole plan is the n RankPlans
// that a generator makes; their connection ends pair up by (source, destination, tag). Plain values: copy, compare,
// store freely.
//
// There is one instruction, the Step: read the operands, reduce them in the order given, write the result to the
// destination (if any) and to every send. Execution of a lane:
//   for each tile: for each block: for j in 0 .. count-1: for each step of the block: for each slice of the step
// A step takes part in tile t only if its extent (the chunk that gives its length) has a tile t; every extent has a
// tile 0, even with length zero. So both ends of a connection derive the same messages from the same chunks.
#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rondo::plan {

enum class Buffer : std::uint8_t { input, output, scratch };
inline constexpr int buffer_count = 3;

// Chunk (base + stride * j) mod chunks[buffer] of a buffer, where j is the index of the enclosing block's loop.
// Invariant: 0 <= base < chunks[buffer], |stride| < chunks[buffer].
struct ChunkRef {
  Buffer buffer = Buffer::input;
  std::int32_t base = 0;
  std::int32_t stride = 0;
  bool operator==(const ChunkRef&) const = default;
};

// What a step reads: a chunk of this rank, or the next message of an incoming connection.
struct Operand {
  enum class Kind : std::uint8_t { local, receive };
  Kind kind = Kind::local;
  ChunkRef chunk;                // local
  std::int32_t connection = -1;  // receive: index into RankPlan::connections
  bool operator==(const Operand&) const = default;
};

struct Send {
  std::int32_t connection = -1;
  bool flush = true;  // false defers the doorbell to a later send on the same connection (aggregation)
  bool operator==(const Send&) const = default;
};

// This step may start tile t once lane `lane` of the same rank has completed its step `step` (counted through the lane
// with loops unrolled) of tile t - lag.
struct After {
  std::int32_t lane = 0;
  std::int32_t step = 0;
  std::int32_t lag = 0;
  bool operator==(const After&) const = default;
};

struct Step {
  std::vector<Operand> operands;  // in the order of reduction
  std::optional<ChunkRef> destination;
  std::vector<Send> sends;
  ChunkRef extent;  // whose length this step has
  std::vector<After> after;
  std::vector<std::int32_t> drain;  // first wait until the receiver has released all messages sent on these connections
  // The result is the complete reduction (the place where avg divides). In plans of collectives that reduce, every
  // output chunk has passed through exactly one such step.
  bool finish = false;
  bool operator==(const Step&) const = default;
};

// `steps`, `count` times; j counts the repetitions.
struct Block {
  std::int32_t count = 1;
  std::vector<Step> steps;
  bool operator==(const Block&) const = default;
};

struct Lane {
  std::vector<Block> blocks;
  bool operator==(const Lane&) const = default;
};

enum class Direction : std::uint8_t { outgoing, incoming };

struct Connection {
  Direction direction = Direction::outgoing;
  std::int32_t peer = 0;       // rank within the plan
  std::int32_t tag = 0;        // tells connections between the same two ranks apart
  std::int32_t lane = 0;       // this rank's lane that uses this end
  std::int32_t slots_min = 1;  // messages that must fit, at one slice a step, for the plan to be live
  bool direct = false;         // messages may be references into window memory instead of payload
  bool operator==(const Connection&) const = default;
};

struct RankPlan {
  std::string name;  // the algorithm's
  Collective collective = Collective::all_reduce;
  std::int32_t size = 1;
  std::int32_t rank = 0;
  std::int32_t root = 0;                          // where the collective has one
  std::int32_t chunks[buffer_count] = {1, 1, 0};  // of input, output, scratch
  std::int32_t scratch_tiles = 1;                 // D: scratch of tile t is reused by tile t + D
  bool rank_ordered = false;                      // every output is the ascending left fold over ranks, in one step
  std::vector<Connection> connections;
  std::vector<Lane> lanes;
  bool operator==(const RankPlan&) const = default;

  std::int32_t chunk_at(const ChunkRef& ref, std::int64_t j) const {
    if (j == 0 || ref.stride == 0) return ref.base;
    const std::int64_t m = chunks[static_cast<int>(ref.buffer)];
    const std::int64_t c = (ref.base + ref.stride * j) % m;
    return static_cast<std::int32_t>(c < 0 ? c + m : c);
  }
};

// What a generator is asked for. v-forms use the plans of their even siblings with a run-time chunk table.
struct Shape {
  Collective collective = Collective::all_reduce;
  std::int32_t size = 1;
  std::int32_t root = 0;
};

// Chunks by collective (n ranks), which generators must use for input / output so that chunk tables are the same for
// all:
//   all_reduce, reduce, broadcast: the same number c for both, any c >= 1 the generator likes (the buffer is cut in c)
//   all_gather: 1 / n      reduce_scatter: n / 1      all_to_all: n / n      barrier: 1 / 1 (of length zero)
//   gather: 1 / n on the root, 1 / 0 elsewhere       scatter: n / 1 on the root, 0 / 1 elsewhere
// reduce: output exists on the root only (c / 0 elsewhere); broadcast: input exists on the root only (0 / c elsewhere).

}  // namespace rondo::plan
