// Two-shot: rank j owns chunk j. Everyone sends its chunk j to j, which reduces all n contributions in ascending rank
// order in one step and sends the result to everyone. Two messages deep, the ring's bytes, n - 1 connections each way
// twice.
//
// Three lanes, so that one thread keeps all of it moving: A sends raw chunks to their owners, B reduces the own chunk
// and sends it out, C stores the results of others. References are safe also in place: input chunk j is overwritten
// only by the result that its owner sent after reading it.
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

namespace rondo::algorithms {

using plan::Builder;
using plan::input;
using plan::LaneBuilder;
using plan::output;

namespace {

constexpr plan::ConnectionOptions raw{.tag = 0, .slots_min = 1, .direct = true};
constexpr plan::ConnectionOptions result{.tag = 1, .slots_min = 1, .direct = true};

}  // namespace

plan::RankPlan two_shot_all_reduce(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("two_shot", shape, true);
  Builder plan("two_shot", shape, rank, {.input = n, .output = n}, true);
  LaneBuilder a = plan.lane(), b = plan.lane(), c = plan.lane();
  // Rotating from rank + 1, so that at each moment every owner is sent to by one rank.
  for (std::int32_t d = 1; d < n; ++d) a.step().local(input, rank + d).send(a.to(rank + d, raw));
  auto reduce = b.step();
  for (std::int32_t q = 0; q < n; ++q) {
    if (q == rank) reduce.local(input, rank);
    else reduce.receive(b.from(q, raw));
  }
  reduce.store(output, rank).finish();
  for (std::int32_t d = 1; d < n; ++d) reduce.send(b.to(rank + d, result));
  for (std::int32_t d = 1; d < n; ++d) c.step().receive(c.from(rank - d, result)).store(output, rank - d);
  return plan.build();
}

double two_shot_all_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  const double n = shape.size;
  if (shape.size == 1) return 0;
  return 2 * link.alpha * (1 + message_share * (n - 2)) + (n - 1) / n * bytes * (2 * link.beta + link.gamma);
}

}  // namespace rondo::algorithms
