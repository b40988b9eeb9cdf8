#include "executor/cpu/bound_plan.hpp"

#include <rondo/error.hpp>

#include "executor/cpu/call.hpp"

#include <fmt/format.h>

#include <utility>

namespace rondo::executor {

BoundPlan::BoundPlan(plan::RankPlan rank_plan, ConnectionSource& source, std::uint32_t tag_base)
    : plan(std::move(rank_plan)) {
  connections.reserve(plan.connections.size());
  for (const plan::Connection& c : plan.connections) {
    BoundConnection bound;
    bound.peer = c.peer;
    bound.tag = tag_base + static_cast<std::uint32_t>(c.tag);
    bound.direct = c.direct;
    if (c.direction == plan::Direction::outgoing) {
      bound.send = source.open_send(c.peer, bound.tag);
      const auto needed = static_cast<std::size_t>(c.slots_min) * slices_a_tile;
      if (bound.send->slots < needed)
        throw Error(ErrorCode::plan,
                    fmt::format("{} needs {} slots towards rank {}, where the connection has {}", plan.name, needed,
                                c.peer, bound.send->slots),
                    "fewer would deadlock; use another algorithm", c.peer);
    }
    connections.push_back(bound);
  }
}

}  // namespace rondo::executor
