// One-shot: everyone sends its whole input to everyone and reduces all n contributions itself, in ascending rank order.
// One message deep, n - 1 times the bytes: for the smallest messages.
//
// One lane, so that in place the sends have left before the output overwrites the input. Messages are never references
// for the same reason: a peer might still read the input that this rank overwrites.
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

namespace rondo::algorithms {

using plan::Builder;
using plan::input;
using plan::LaneBuilder;
using plan::output;

plan::RankPlan one_shot_all_reduce(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("one_shot", shape, true);
  Builder plan("one_shot", shape, rank, {.input = 1, .output = 1}, true);
  LaneBuilder lane = plan.lane();
  auto give = lane.step();
  give.local(input, 0);
  // Nearest first, each rank from its own place, so that not all start with the same peer.
  for (std::int32_t d = 1; d < n; ++d) give.send(lane.to(rank + d));
  auto reduce = lane.step();
  for (std::int32_t q = 0; q < n; ++q) {
    if (q == rank) reduce.local(input, 0);
    else reduce.receive(lane.from(q));
  }
  reduce.store(output, 0).finish();
  return plan.build();
}

// Barrier: the same, of length zero.
plan::RankPlan one_shot_barrier(const plan::Shape& shape, std::int32_t rank) {
  return one_shot_all_reduce(shape, rank);
}

double one_shot_all_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  const double peers = shape.size - 1.0;
  if (shape.size == 1) return 0;
  return link.alpha * (1 + message_share * (peers - 1)) + peers * bytes * (link.beta + link.gamma);
}

double one_shot_barrier_cost(const plan::Shape& shape, double, const plan::LinkCost& link) {
  return one_shot_all_reduce_cost(shape, 0, link);
}

}  // namespace rondo::algorithms
