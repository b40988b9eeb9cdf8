// Direct: every byte goes straight from its origin to where it is needed. One message deep, n - 1 connections.
// The rank that reduces takes all contributions in ascending rank order in one step.
//
// Sends and receives of a rank are separate lanes, so neither waits for the other. References are safe also in place:
// no chunk that is sent is ever overwritten, except by an equal copy of itself in the very step that sends it.
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

namespace rondo::algorithms {

using plan::Builder;
using plan::input;
using plan::LaneBuilder;
using plan::output;

namespace {

constexpr plan::ConnectionOptions edge{.tag = 0, .slots_min = 1, .direct = true};

}  // namespace

plan::RankPlan direct_all_gather(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("direct", shape, true);
  Builder plan("direct", shape, rank, {.input = 1, .output = n}, true);
  LaneBuilder sending = plan.lane(), receiving = plan.lane();
  auto give = sending.step();
  give.local(input, 0).store(output, rank);
  for (std::int32_t d = 1; d < n; ++d) give.send(sending.to(rank + d, edge));
  for (std::int32_t d = 1; d < n; ++d) receiving.step().receive(receiving.from(rank - d, edge)).store(output, rank - d);
  return plan.build();
}

plan::RankPlan direct_reduce_scatter(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("direct", shape, true);
  Builder plan("direct", shape, rank, {.input = n, .output = 1}, true);
  LaneBuilder sending = plan.lane(), reducing = plan.lane();
  for (std::int32_t d = 1; d < n; ++d) sending.step().local(input, rank + d).send(sending.to(rank + d, edge));
  auto reduce = reducing.step();
  for (std::int32_t q = 0; q < n; ++q) {
    if (q == rank) reduce.local(input, rank);
    else reduce.receive(reducing.from(q, edge));
  }
  reduce.store(output, 0).finish();
  return plan.build();
}

plan::RankPlan direct_broadcast(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("direct", shape, true);
  const bool root = rank == shape.root;
  Builder plan("direct", shape, rank, {.input = root ? 1 : 0, .output = 1}, true);
  LaneBuilder lane = plan.lane();
  auto step = lane.step();
  if (root) step.local(input, 0);
  else step.receive(lane.from(shape.root, edge));
  step.store(output, 0);
  for (std::int32_t d = 1; root && d < n; ++d) step.send(lane.to(rank + d, edge));
  return plan.build();
}

plan::RankPlan direct_reduce(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("direct", shape, true);
  const bool root = rank == shape.root;
  Builder plan("direct", shape, rank, {.input = 1, .output = root ? 1 : 0}, true);
  LaneBuilder lane = plan.lane();
  auto step = lane.step();
  if (!root) {
    step.local(input, 0).send(lane.to(shape.root, edge));
    return plan.build();
  }
  for (std::int32_t q = 0; q < n; ++q) {
    if (q == rank) step.local(input, 0);
    else step.receive(lane.from(q, edge));
  }
  step.store(output, 0).finish();
  return plan.build();
}

plan::RankPlan direct_gather(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("direct", shape, true);
  const bool root = rank == shape.root;
  Builder plan("direct", shape, rank, {.input = 1, .output = root ? n : 0}, true);
  LaneBuilder lane = plan.lane();
  if (!root) {
    lane.step().local(input, 0).send(lane.to(shape.root, edge));
    return plan.build();
  }
  lane.step().local(input, 0).store(output, rank);
  for (std::int32_t d = 1; d < n; ++d) lane.step().receive(lane.from(rank + d, edge)).store(output, rank + d);
  return plan.build();
}

plan::RankPlan direct_scatter(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("direct", shape, true);
  const bool root = rank == shape.root;
  Builder plan("direct", shape, rank, {.input = root ? n : 0, .output = 1}, true);
  LaneBuilder lane = plan.lane();
  if (!root) {
    lane.step().receive(lane.from(shape.root, edge)).store(output, 0);
    return plan.build();
  }
  for (std::int32_t d = 1; d < n; ++d) lane.step().local(input, rank + d).send(lane.to(rank + d, edge));
  lane.step().local(input, rank).store(output, 0);
  return plan.build();
}

namespace {

// One rank's port carries the n - 1 shares of the others.
double one_to_all(const plan::Shape& shape, double bytes, double per_byte, double alpha) {
  const double n = shape.size;
  if (shape.size == 1) return 0;
  return alpha * (1 + message_share * (n - 2)) + (n - 1) * bytes * per_byte;
}

}  // namespace

double direct_all_gather_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return one_to_all(shape, bytes / shape.size, link.beta, link.alpha);
}

double direct_reduce_scatter_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return one_to_all(shape, bytes / shape.size, link.beta + link.gamma, link.alpha);
}

double direct_broadcast_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return one_to_all(shape, bytes, link.beta, link.alpha);
}

double direct_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return one_to_all(shape, bytes, link.beta + link.gamma, link.alpha);
}

double direct_gather_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return one_to_all(shape, bytes / shape.size, link.beta, link.alpha);
}

double direct_scatter_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return one_to_all(shape, bytes / shape.size, link.beta, link.alpha);
}

double direct_all_to_all_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return one_to_all(shape, bytes / shape.size, link.beta, link.alpha);
}

}  // namespace rondo::algorithms
