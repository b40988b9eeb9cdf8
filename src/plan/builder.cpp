#include "plan/builder.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <utility>

namespace rondo::plan {
namespace {

// An extent that no call has set yet.
constexpr std::int32_t unset = -1;

std::int32_t modulo(std::int64_t value, std::int64_t m) {
  const std::int64_t rest = value % m;
  return static_cast<std::int32_t>(rest < 0 ? rest + m : rest);
}

[[noreturn]] void refuse(const RankPlan& plan, const std::string& why, const std::string& hint) {
  throw Error(ErrorCode::plan,
              fmt::format("generator {} of {} at rank {} of {}: {}", plan.name, name_of(plan.collective), plan.rank,
                          plan.size, why),
              hint);
}

}  // namespace

Step& StepBuilder::step() { return builder_->plan_.lanes[lane_].blocks[block_].steps[step_]; }

ChunkRef StepBuilder::chunk(Buffer buffer, Index index) const {
  const std::int32_t chunks = builder_->plan_.chunks[static_cast<int>(buffer)];
  if (chunks < 1)
    refuse(builder_->plan_,
           fmt::format("a step of lane {} names a chunk of buffer {}, which has none on this rank", lane_,
                       static_cast<int>(buffer)),
           "give the buffer chunks in ChunkCounts, or leave the step out on this rank");
  return {buffer, modulo(index.base, chunks), static_cast<std::int32_t>(index.stride % chunks)};
}

void StepBuilder::offer_extent(const ChunkRef& ref, ExtentFrom from) {
  if (from <= extent_from_ || (ref.buffer == Buffer::scratch && from != ExtentFrom::caller)) return;
  step().extent = ref;
  extent_from_ = from;
}

StepBuilder& StepBuilder::local(Buffer buffer, Index index) {
  const ChunkRef ref = chunk(buffer, index);
  step().operands.push_back({Operand::Kind::local, ref, -1});
  offer_extent(ref, ExtentFrom::operand);
  return *this;
}

StepBuilder& StepBuilder::receive(ConnectionEnd from) {
  step().operands.push_back({Operand::Kind::receive, {}, from.index});
  return *this;
}

StepBuilder& StepBuilder::store(Buffer buffer, Index index) {
  const ChunkRef ref = chunk(buffer, index);
  step().destination = ref;
  offer_extent(ref, ExtentFrom::destination);
  return *this;
}

StepBuilder& StepBuilder::send(ConnectionEnd to, bool flush) {
  step().sends.push_back({to.index, flush});
  return *this;
}

StepBuilder& StepBuilder::drain(ConnectionEnd to) {
  step().drain.push_back(to.index);
  return *this;
}

StepBuilder& StepBuilder::after(std::int32_t lane, std::int32_t step_index, std::int32_t lag) {
  step().after.push_back({lane, step_index, lag});
  return *this;
}

StepBuilder& StepBuilder::extent(Buffer buffer, Index index) {
  offer_extent(chunk(buffer, index), ExtentFrom::caller);
  return *this;
}

StepBuilder& StepBuilder::finish() {
  step().finish = true;
  return *this;
}

ConnectionEnd LaneBuilder::end(Direction direction, std::int64_t peer, const ConnectionOptions& options) {
  RankPlan& plan = builder_->plan_;
  Connection connection;
  connection.direction = direction;
  connection.peer = modulo(peer, plan.size);
  connection.tag = options.tag;
  connection.lane = index();
  connection.slots_min = options.slots_min;
  connection.direct = options.direct;
  plan.connections.push_back(connection);
  return {static_cast<std::int32_t>(plan.connections.size() - 1)};
}

ConnectionEnd LaneBuilder::from(std::int64_t peer, const ConnectionOptions& options) {
  return end(Direction::incoming, peer, options);
}

ConnectionEnd LaneBuilder::to(std::int64_t peer, const ConnectionOptions& options) {
  return end(Direction::outgoing, peer, options);
}

StepBuilder LaneBuilder::step() {
  std::vector<Block>& blocks = builder_->plan_.lanes[lane_].blocks;
  // Steps outside loops gather in one block that runs once; a loop of one turn must not swallow those after it.
  if (!in_loop_ && (blocks.empty() || blocks.back().count < 0)) blocks.emplace_back();
  blocks.back().steps.emplace_back().extent.base = unset;
  return {*builder_, lane_, blocks.size() - 1, blocks.back().steps.size() - 1};
}

void LaneBuilder::begin_loop(std::int64_t count) {
  RankPlan& plan = builder_->plan_;
  if (in_loop_) refuse(plan, fmt::format("lane {} nests a loop in a loop", lane_), "unroll the inner loop");
  if (count > std::numeric_limits<std::int32_t>::max())
    refuse(plan, fmt::format("a loop of {} turns; at most 2^31 - 1 are possible", count), "split the loop");
  in_loop_ = true;
  // Negative while building: tells a loop from the block of single steps.
  plan.lanes[lane_].blocks.emplace_back().count = -static_cast<std::int32_t>(count);
}

Builder::Builder(std::string_view name, const Shape& shape, std::int32_t rank, const ChunkCounts& chunks,
                 bool rank_ordered) {
  plan_.name = name;
  plan_.collective = shape.collective;
  plan_.size = shape.size;
  plan_.rank = rank;
  plan_.root = shape.root;
  plan_.chunks[static_cast<int>(Buffer::input)] = chunks.input;
  plan_.chunks[static_cast<int>(Buffer::output)] = chunks.output;
  plan_.chunks[static_cast<int>(Buffer::scratch)] = chunks.scratch;
  plan_.rank_ordered = rank_ordered;
  if (shape.size < 1 || rank < 0 || rank >= shape.size || shape.root < 0 || shape.root >= shape.size)
    refuse(plan_, fmt::format("rank {} and root {} must lie in 0 .. {}", rank, shape.root, shape.size - 1),
           "ask for a size of at least 1 and ranks below it");
}

LaneBuilder Builder::lane() {
  plan_.lanes.emplace_back();
  return {*this, plan_.lanes.size() - 1};
}

RankPlan Builder::build() {
  for (std::size_t l = 0; l < plan_.lanes.size(); ++l) {
    for (Block& block : plan_.lanes[l].blocks) {
      block.count = block.count < 0 ? -block.count : block.count;
      for (const Step& step : block.steps)
        if (step.extent.base == unset)
          refuse(plan_, fmt::format("a step of lane {} has neither a destination nor a local operand", l),
                 "name its extent()");
    }
  }
  // Peer, direction and tag in one number each: sorting them is the dearest part of a plan of many connections.
  std::vector<std::uint64_t> ends;
  ends.reserve(plan_.connections.size());
  for (const Connection& connection : plan_.connections)
    ends.push_back(static_cast<std::uint64_t>(connection.peer) << 33 |
                   std::uint64_t{connection.direction == Direction::incoming} << 32 |
                   static_cast<std::uint32_t>(connection.tag));
  std::sort(ends.begin(), ends.end());
  const auto twin = std::adjacent_find(ends.begin(), ends.end());
  if (twin != ends.end())
    refuse(plan_,
           fmt::format("two ends of the same connection with rank {}, tag {}", *twin >> 33,
                       static_cast<std::int32_t>(*twin)),
           "give one of them another tag");
  return std::move(plan_);
}

}  // namespace rondo::plan
