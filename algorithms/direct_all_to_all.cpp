// Direct all-to-all, safe in place: pairs exchange in rounds. In round t rank r meets q = (t - r) mod n, and q meets r.
//
// In place, input chunk q and output chunk q are the same memory, so r must have sent to q before it stores what q
// sent. One lane keeps that order; its sends run `lead` rounds ahead of its receives, so that a rank rarely waits for a
// slow partner. Payload only: a peer might still read a chunk by reference while this rank overwrites it.
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

namespace rondo::algorithms {

using plan::Builder;
using plan::input;
using plan::LaneBuilder;
using plan::output;

namespace {

constexpr std::int32_t lead = 8;

}  // namespace

plan::RankPlan direct_all_to_all(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("direct", shape, true);
  Builder plan("direct", shape, rank, {.input = n, .output = n}, true);
  LaneBuilder lane = plan.lane();
  const auto partner = [&](std::int32_t t) { return (t - rank + n) % n; };
  const auto give = [&](std::int32_t t) {
    const std::int32_t q = partner(t);
    if (q == rank) lane.step().local(input, q).store(output, q);
    else lane.step().local(input, q).send(lane.to(q));
  };
  const auto take = [&](std::int32_t t) {
    const std::int32_t q = partner(t);
    if (q != rank) lane.step().receive(lane.from(q)).store(output, q);
  };
  for (std::int32_t t = 0; t < n + lead; ++t) {
    if (t < n) give(t);
    if (t >= lead) take(t - lead);
  }
  return plan.build();
}

}  // namespace rondo::algorithms
