// Bruck's all_gather: after round i a rank has the chunks of 2^(i + 1) ranks from its own on, for it gets those that
// the rank 2^i further on has. ceil(log2 n) rounds for any n, where direct sends n - 1 messages to as many ranks and
// the ring takes n - 1 rounds; the bytes are the same.
//
// A round's sends and receives alternate, so one slot is enough.
// References are safe: a chunk of output is written once. Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient
// algorithms for all-to-all communications in multiport message-passing systems" (1997).
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

#include <algorithm>
#include <bit>

namespace rondo::algorithms {

using plan::Builder;
using plan::ConnectionEnd;
using plan::Index;
using plan::input;
using plan::LaneBuilder;
using plan::output;

plan::RankPlan bruck_all_gather(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("bruck", shape, true);
  Builder plan("bruck", shape, rank, {.input = 1, .output = n}, true);
  LaneBuilder lane = plan.lane();
  lane.step().local(input, 0).store(output, rank);
  std::int32_t tag = 0;  // two rounds may meet the same peer
  for (std::int64_t have = 1; have < n; have *= 2, ++tag) {
    const std::int64_t more = std::min<std::int64_t>(have, n - have);
    const plan::ConnectionOptions round{.tag = tag, .slots_min = 1, .direct = true};
    const ConnectionEnd to = lane.to(rank - have + n, round), from = lane.from(rank + have, round);
    lane.loop(more, [&](LaneBuilder& body, Index j) {
      body.step().local(output, Index(rank) + j).send(to);
      body.step().receive(from).store(output, Index(rank + have) + j);
    });
  }
  return plan.build();
}

double bruck_all_gather_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  if (shape.size == 1) return 0;
  const double n = shape.size, rounds = std::bit_width(static_cast<std::uint32_t>(shape.size - 1));
  return link.alpha * (rounds + message_share * (n - 1 - rounds)) + (n - 1) / n * bytes * link.beta;
}

}  // namespace rondo::algorithms
