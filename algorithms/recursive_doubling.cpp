// Recursive doubling: in round i partners at distance 2^i exchange partial sums. ceil(log2 n) messages deep, the whole
// buffer in each: for small messages and barriers among many ranks.
//
// Any n: with p the largest power of two <= n, the first n - p pairs (2v, 2v + 1) fold: the even rank hands its input
// to the odd one, which takes part as v, and gets the result back. The others take part as v = rank - (n - p). Of two
// operands the one of the lower v comes first on both sides, so all ranks get the same bits. Payload only: the
// accumulator is overwritten while a peer might read it. Source: Thakur, Rabenseifner, Gropp, "Optimization of
// collective communication operations in MPICH" (2005), 4.
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

#include <bit>

namespace rondo::algorithms {

using plan::Builder;
using plan::ConnectionEnd;
using plan::input;
using plan::LaneBuilder;
using plan::output;

plan::RankPlan recursive_doubling_all_reduce(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  // A barrier has nothing to reduce, so its order is no matter.
  const bool rank_ordered = shape.collective == Collective::barrier;
  if (n == 1) return single_rank("recursive_doubling", shape, rank_ordered);
  Builder plan("recursive_doubling", shape, rank, {.input = 1, .output = 1}, rank_ordered);
  LaneBuilder lane = plan.lane();
  const auto p = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(n)));
  const std::int32_t pairs = n - p;
  const bool paired = rank < 2 * pairs;
  if (paired && rank % 2 == 0) {
    lane.step().local(input, 0).send(lane.to(rank + 1));
    lane.step().receive(lane.from(rank + 1)).store(output, 0);
    return plan.build();
  }
  const std::int32_t v = paired ? rank / 2 : rank - pairs;
  const auto rank_of = [&](std::int32_t w) { return w < pairs ? 2 * w + 1 : w + pairs; };

  // What this rank holds before round 0: its input, or the sum of its pair in output. p >= 2, so there is a round 0.
  if (paired) {
    lane.step().receive(lane.from(rank - 1)).local(input, 0).store(output, 0).send(lane.to(rank_of(v ^ 1)));
  } else {
    lane.step().local(input, 0).send(lane.to(rank_of(v ^ 1)));
  }
  for (std::int32_t d = 1; d < p; d *= 2) {
    const plan::Buffer held = d == 1 && !paired ? input : output;
    const ConnectionEnd from = lane.from(rank_of(v ^ d));
    auto step = lane.step();
    if ((v & d) != 0) step.receive(from).local(held, 0);
    else step.local(held, 0).receive(from);
    step.store(output, 0);
    if (2 * d < p) {
      step.send(lane.to(rank_of(v ^ (2 * d))));
    } else {
      step.finish();
      if (paired) step.send(lane.to(rank - 1));
    }
  }
  return plan.build();
}

// Barrier: the same, of length zero.
plan::RankPlan recursive_doubling_barrier(const plan::Shape& shape, std::int32_t rank) {
  return recursive_doubling_all_reduce(shape, rank);
}

double recursive_doubling_all_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  if (shape.size == 1) return 0;
  const auto n = static_cast<std::uint32_t>(shape.size);
  const double rounds = std::bit_width(n) - 1, exchange = link.alpha + bytes * (link.beta + link.gamma);
  const double fold = std::has_single_bit(n) ? 0 : exchange + link.alpha + bytes * link.beta;
  return rounds * exchange + fold;
}

double recursive_doubling_barrier_cost(const plan::Shape& shape, double, const plan::LinkCost& link) {
  return recursive_doubling_all_reduce_cost(shape, 0, link);
}

}  // namespace rondo::algorithms
