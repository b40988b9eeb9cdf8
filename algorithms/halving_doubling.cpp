// Recursive halving and doubling (Rabenseifner): a reduce-scatter in which partners at distance p/2, p/4, .. 1 exchange
// the half of what they still hold that the other one keeps, then an all-gather back along the same partners. 2 log2 n
// rounds and the ring's bytes: for sizes between recursive doubling's and the ring's.
//
// The buffer has p chunks, p the largest power of two <= n; participant v ends the first half with chunk v complete.
// Any n: the first n - p pairs fold as in recursive_doubling.cpp. Of two operands the one of the lower v comes first. A
// round's sends and receives alternate, so one slot is enough. Payload only in the first half, where output holds
// partial sums that are overwritten; results are written once, so they may go as references. Source: Thakur,
// Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005), 4.
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

#include <bit>

namespace rondo::algorithms {

using plan::Builder;
using plan::ConnectionEnd;
using plan::Index;
using plan::input;
using plan::LaneBuilder;
using plan::output;

namespace {

constexpr plan::ConnectionOptions halving{.tag = 0, .slots_min = 1, .direct = false};
constexpr plan::ConnectionOptions doubling{.tag = 1, .slots_min = 1, .direct = true};
constexpr plan::ConnectionOptions fold{.tag = 2, .slots_min = 1, .direct = false};
constexpr plan::ConnectionOptions unfold{.tag = 3, .slots_min = 1, .direct = true};

}  // namespace

plan::RankPlan halving_doubling_all_reduce(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("halving_doubling", shape, false);
  const auto p = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(n)));
  const std::int32_t pairs = n - p;
  const bool paired = rank < 2 * pairs;
  Builder plan("halving_doubling", shape, rank, {.input = p, .output = p});
  LaneBuilder lane = plan.lane();
  if (paired && rank % 2 == 0) {
    const ConnectionEnd to = lane.to(rank + 1, fold), from = lane.from(rank + 1, unfold);
    lane.loop(p, [&](LaneBuilder& body, Index j) { body.step().local(input, j).send(to); });
    lane.loop(p, [&](LaneBuilder& body, Index j) { body.step().receive(from).store(output, j); });
    return plan.build();
  }
  const std::int32_t v = paired ? rank / 2 : rank - pairs;
  const auto rank_of = [&](std::int32_t w) { return w < pairs ? 2 * w + 1 : w + pairs; };
  if (paired) {
    const ConnectionEnd from = lane.from(rank - 1, fold);
    lane.loop(p, [&](LaneBuilder& body, Index j) { body.step().receive(from).local(input, j).store(output, j); });
  }
  for (std::int32_t d = p / 2; d >= 1; d /= 2) {
    const plan::Buffer held = d == p / 2 && !paired ? input : output;
    const std::int32_t mine = v & ~(d - 1), theirs = mine ^ d;  // the first of the d chunks that each of us keeps
    const ConnectionEnd to = lane.to(rank_of(v ^ d), halving), from = lane.from(rank_of(v ^ d), halving);
    lane.loop(d, [&](LaneBuilder& body, Index j) {
      body.step().local(held, Index(theirs) + j).send(to);
      auto step = body.step();
      if ((v & d) != 0) step.receive(from).local(held, Index(mine) + j);
      else step.local(held, Index(mine) + j).receive(from);
      step.store(output, Index(mine) + j);
      if (d == 1) step.finish();
    });
  }
  for (std::int32_t d = 1; d < p; d *= 2) {
    const std::int32_t mine = v & ~(d - 1), theirs = mine ^ d;
    const ConnectionEnd to = lane.to(rank_of(v ^ d), doubling), from = lane.from(rank_of(v ^ d), doubling);
    lane.loop(d, [&](LaneBuilder& body, Index j) {
      body.step().local(output, Index(mine) + j).send(to);
      body.step().receive(from).store(output, Index(theirs) + j);
    });
  }
  if (paired) {
    const ConnectionEnd to = lane.to(rank - 1, unfold);
    lane.loop(p, [&](LaneBuilder& body, Index j) { body.step().local(output, j).send(to); });
  }
  return plan.build();
}

double halving_doubling_all_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  if (shape.size == 1) return 0;
  const auto n = static_cast<std::uint32_t>(shape.size);
  const double p = std::bit_floor(n), rounds = std::bit_width(n) - 1;
  const double share = (p - 1) / p * bytes;
  const double exchanges =
      2 * link.alpha * (rounds + message_share * (p - 1 - rounds)) + share * (2 * link.beta + link.gamma);
  const double folds = 2 * (link.alpha * (1 + message_share * (p - 1)) + bytes * link.beta) + bytes * link.gamma;
  return exchanges + (std::has_single_bit(n) ? 0 : folds);
}

}  // namespace rondo::algorithms
