// Chain: two arms from the root, root + 1, root + 2, ... and root - 1, root - 2, ..., each over half of the ranks and
// pipelined tile by tile. Half as deep as going round the ring, at twice the bytes through the root's port.
//
// References are safe: an input is never overwritten by another value, an output is written once.
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

#include <algorithm>

namespace rondo::algorithms {

using plan::Builder;
using plan::input;
using plan::LaneBuilder;
using plan::output;

namespace {

constexpr plan::ConnectionOptions edge{.tag = 0, .slots_min = 1, .direct = true};
constexpr double pipeline_tile = 65536;

// Where a rank stands: `inward` leads to the root, `outward` away from it (0: nobody).
struct Place {
  std::int32_t inward;
  std::int32_t outward;
};

// The arm of ranks above the root holds n / 2 of them, the one below the rest.
Place place_of(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size, upper = n / 2;
  const std::int32_t d = (rank - shape.root + n) % n;
  if (d <= upper) return {-1, d == upper ? 0 : 1};
  return {1, d == upper + 1 ? 0 : -1};
}

}  // namespace

plan::RankPlan chain_broadcast(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("chain", shape, true);
  const bool root = rank == shape.root;
  Builder plan("chain", shape, rank, {.input = root ? 1 : 0, .output = 1}, true);
  LaneBuilder lane = plan.lane();
  auto step = lane.step();
  if (root) {
    step.local(input, 0).store(output, 0).send(lane.to(rank + 1, edge));
    if (n > 2) step.send(lane.to(rank - 1, edge));
    return plan.build();
  }
  const Place place = place_of(shape, rank);
  step.receive(lane.from(rank + place.inward, edge)).store(output, 0);
  if (place.outward != 0) step.send(lane.to(rank + place.outward, edge));
  return plan.build();
}

plan::RankPlan chain_reduce(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("chain", shape, false);
  const bool root = rank == shape.root;
  Builder plan("chain", shape, rank, {.input = 1, .output = root ? 1 : 0});
  LaneBuilder lane = plan.lane();
  auto step = lane.step();
  if (root) {
    step.local(input, 0).receive(lane.from(rank + 1, edge));
    if (n > 2) step.receive(lane.from(rank - 1, edge));
    step.store(output, 0).finish();
    return plan.build();
  }
  const Place place = place_of(shape, rank);
  step.local(input, 0);
  if (place.outward != 0) step.receive(lane.from(rank + place.outward, edge));
  step.send(lane.to(rank + place.inward, edge));
  return plan.build();
}

namespace {

// n / 2 hops of the first tile, then the others behind it through the root's port, which serves `arms`.
double chain_cost(const plan::Shape& shape, double bytes, double alpha, double per_byte) {
  if (shape.size == 1) return 0;
  const double tile = std::min(bytes, pipeline_tile), arms = shape.size > 2 ? 2 : 1;
  const std::int32_t hops = shape.size / 2;
  return hops * (alpha + tile * per_byte) + (bytes - tile) * arms * per_byte;
}

}  // namespace

double chain_broadcast_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return chain_cost(shape, bytes, link.alpha, link.beta);
}

double chain_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return chain_cost(shape, bytes, link.alpha, link.beta + link.gamma);
}

}  // namespace rondo::algorithms
