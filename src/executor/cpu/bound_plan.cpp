#include "executor/cpu/bound_plan.hpp"

#include <rondo/error.hpp>

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
    if (c.direction == plan::Direction::outgoing) bound.send = source.open_send(c.peer, bound.tag);
    connections.push_back(bound);
  }
}

void BoundPlan::require_slots(std::size_t slices) const {
  for (std::size_t i = 0; i < connections.size(); ++i) {
    if (connections[i].send == nullptr) continue;
    const std::size_t needed = static_cast<std::size_t>(plan.connections[i].slots_min) * slices;
    const std::size_t slots = connections[i].send->slots;
    if (slots >= needed) continue;
    throw Error(ErrorCode::plan,
                fmt::format("{} of {} needs {} slots towards rank {} at this size, where the connection has {}",
                            plan.name, name_of(plan.collective), needed, connections[i].peer, slots),
                "with fewer it is not proved to come to an end; use another algorithm", connections[i].peer);
  }
}

}  // namespace rondo::executor
