// Ring: rank r receives from r - 1 and sends to r + 1, one lane a rank. Optimal in bytes, 2 (n - 1) messages deep.
//
// Chunk c starts at rank c + 1, is summed once around and arrives complete at rank c; then it is copied once around.
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009).
//
// Every message but a partial sum may be a reference: the first hop names an input chunk that is overwritten in place
// only once its sum has been round the whole ring, the later ones name output chunks that are written once.
// Two slots: each rank sends once more before its neighbour takes the first message.
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

#include <algorithm>

namespace rondo::algorithms {

using plan::Builder;
using plan::ConnectionEnd;
using plan::Index;
using plan::input;
using plan::LaneBuilder;
using plan::output;

namespace {

constexpr plan::ConnectionOptions ring_edge{.tag = 0, .slots_min = 2, .direct = true};
constexpr plan::ConnectionOptions chain_edge{.tag = 0, .slots_min = 1, .direct = true};
// The tile by which a chain is pipelined, in bytes; what the closed forms assume.
constexpr double pipeline_tile = 65536;

}  // namespace

plan::RankPlan ring_all_reduce(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size, r = rank;
  if (n == 1) return single_rank("ring", shape, false);
  Builder plan("ring", shape, rank, {.input = n, .output = n});
  LaneBuilder ring = plan.lane();
  const ConnectionEnd from = ring.from(r - 1, ring_edge), to = ring.to(r + 1, ring_edge);
  ring.step().local(input, r - 1).send(to);
  ring.loop(n - 2, [&](LaneBuilder& body, Index j) { body.step().receive(from).local(input, r - 2 - j).send(to); });
  ring.step().receive(from).local(input, r).store(output, r).send(to).finish();
  ring.loop(n - 2, [&](LaneBuilder& body, Index j) { body.step().receive(from).store(output, r - 1 - j).send(to); });
  ring.step().receive(from).store(output, r + 1);
  return plan.build();
}

plan::RankPlan ring_all_gather(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size, r = rank;
  if (n == 1) return single_rank("ring", shape, true);
  Builder plan("ring", shape, rank, {.input = 1, .output = n}, true);
  LaneBuilder ring = plan.lane();
  const ConnectionEnd from = ring.from(r - 1, ring_edge), to = ring.to(r + 1, ring_edge);
  ring.step().local(input, 0).store(output, r).send(to);
  ring.loop(n - 2, [&](LaneBuilder& body, Index j) { body.step().receive(from).store(output, r - 1 - j).send(to); });
  ring.step().receive(from).store(output, r + 1);
  return plan.build();
}

plan::RankPlan ring_reduce_scatter(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size, r = rank;
  if (n == 1) return single_rank("ring", shape, false);
  Builder plan("ring", shape, rank, {.input = n, .output = 1});
  LaneBuilder ring = plan.lane();
  const ConnectionEnd from = ring.from(r - 1, ring_edge), to = ring.to(r + 1, ring_edge);
  ring.step().local(input, r - 1).send(to);
  ring.loop(n - 2, [&](LaneBuilder& body, Index j) { body.step().receive(from).local(input, r - 2 - j).send(to); });
  ring.step().receive(from).local(input, r).store(output, 0).finish();
  return plan.build();
}

// root, root + 1, ..., root - 1: each stores what it receives and passes it on, tile by tile.
plan::RankPlan ring_broadcast(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size, r = rank;
  if (n == 1) return single_rank("ring", shape, true);
  const bool first = r == shape.root, last = (r + 1) % n == shape.root;
  Builder plan("ring", shape, rank, {.input = first ? 1 : 0, .output = 1}, true);
  LaneBuilder lane = plan.lane();
  auto step = lane.step();
  if (first) step.local(input, 0);
  else step.receive(lane.from(r - 1, chain_edge));
  step.store(output, 0);
  if (!last) step.send(lane.to(r + 1, chain_edge));
  return plan.build();
}

// root + 1, root + 2, ..., root: each adds its own and passes the partial sum on.
plan::RankPlan ring_reduce(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size, r = rank;
  if (n == 1) return single_rank("ring", shape, false);
  const bool last = r == shape.root, first = (shape.root + 1) % n == r;
  Builder plan("ring", shape, rank, {.input = 1, .output = last ? 1 : 0});
  LaneBuilder lane = plan.lane();
  auto step = lane.step();
  if (!first) step.receive(lane.from(r - 1, chain_edge));
  step.local(input, 0);
  if (last) step.store(output, 0).finish();
  else step.send(lane.to(r + 1, chain_edge));
  return plan.build();
}

double ring_all_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  const double n = shape.size;
  return (n - 1) * (2 * link.alpha + bytes / n * (2 * link.beta + link.gamma));
}

double ring_all_gather_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  const double n = shape.size;
  return (n - 1) * (link.alpha + bytes / n * link.beta);
}

double ring_reduce_scatter_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  const double n = shape.size;
  return (n - 1) * (link.alpha + bytes / n * (link.beta + link.gamma));
}

// (n - 1) hops of the first tile, then the others behind it.
double ring_broadcast_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  if (shape.size == 1) return 0;
  const double tile = std::min(bytes, pipeline_tile);
  return (shape.size - 1.0) * (link.alpha + tile * link.beta) + (bytes - tile) * link.beta;
}

double ring_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  if (shape.size == 1) return 0;
  const double tile = std::min(bytes, pipeline_tile), per_byte = link.beta + link.gamma;
  return (shape.size - 1.0) * (link.alpha + tile * per_byte) + (bytes - tile) * per_byte;
}

}  // namespace rondo::algorithms
