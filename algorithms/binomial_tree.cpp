// Binomial tree: rank v (counted from the root) hangs below v with its lowest one-bit cleared, so each round doubles
// the number of ranks that have been reached: at most ceil(log2 n) messages deep, where chain is n / 2. The root's port
// carries the buffer ceil(log2 n) times, so it is for small messages among many ranks.
//
// Any n: children that would be n or more are left out. Children are served with the largest subtree first. References
// are safe: an input is never overwritten by another value, an output is written once. Source: Thakur, Rabenseifner,
// Gropp, "Optimization of collective communication operations in MPICH" (2005), 3 and 4.
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

#include <bit>
#include <vector>

namespace rondo::algorithms {

using plan::Builder;
using plan::input;
using plan::LaneBuilder;
using plan::output;

namespace {

constexpr plan::ConnectionOptions edge{.tag = 0, .slots_min = 1, .direct = true};

struct Place {
  std::int32_t parent;                 // -1: the root
  std::vector<std::int32_t> children;  // smallest subtree first
};

Place place_of(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  const std::int32_t v = (rank - shape.root + n) % n;
  const auto rank_of = [&](std::int32_t w) { return static_cast<std::int32_t>((std::int64_t{w} + shape.root) % n); };
  Place place{v == 0 ? -1 : rank_of(v & (v - 1)), {}};
  for (std::int64_t d = 1; v + d < n && (v & d) == 0; d *= 2)
    place.children.push_back(rank_of(static_cast<std::int32_t>(v + d)));
  return place;
}

}  // namespace

plan::RankPlan binomial_tree_broadcast(const plan::Shape& shape, std::int32_t rank) {
  if (shape.size == 1) return single_rank("binomial_tree", shape, true);
  const Place place = place_of(shape, rank);
  const bool root = place.parent < 0;
  Builder plan("binomial_tree", shape, rank, {.input = root ? 1 : 0, .output = 1}, true);
  LaneBuilder lane = plan.lane();
  auto step = lane.step();
  if (root) step.local(input, 0);
  else step.receive(lane.from(place.parent, edge));
  step.store(output, 0);
  for (auto child = place.children.rbegin(); child != place.children.rend(); ++child) step.send(lane.to(*child, edge));
  return plan.build();
}

plan::RankPlan binomial_tree_reduce(const plan::Shape& shape, std::int32_t rank) {
  if (shape.size == 1) return single_rank("binomial_tree", shape, false);
  const Place place = place_of(shape, rank);
  const bool root = place.parent < 0;
  Builder plan("binomial_tree", shape, rank, {.input = 1, .output = root ? 1 : 0});
  LaneBuilder lane = plan.lane();
  auto step = lane.step();
  step.local(input, 0);
  for (const std::int32_t child : place.children) step.receive(lane.from(child, edge));
  if (root) step.store(output, 0).finish();
  else step.send(lane.to(place.parent, edge));
  return plan.build();
}

namespace {

// In each round every rank that has the buffer hands it on whole.
double tree_cost(const plan::Shape& shape, double bytes, double alpha, double per_byte) {
  return std::bit_width(static_cast<std::uint32_t>(shape.size - 1)) * (alpha + bytes * per_byte);
}

}  // namespace

double binomial_tree_broadcast_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return tree_cost(shape, bytes, link.alpha, link.beta);
}

double binomial_tree_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  return tree_cost(shape, bytes, link.alpha, link.beta + link.gamma);
}

}  // namespace rondo::algorithms
