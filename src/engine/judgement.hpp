// What an inquiry proves: that two ranks can never agree, and how to say so.
#pragma once

#include <rondo/error.hpp>

#include "base/system.hpp"
#include "engine/communicator_state.hpp"
#include "engine/messages.hpp"

#include <optional>

namespace rondo::engine {

// The mismatch between this rank and the sender `source` of an inquiry about their communicator, if there is one:
// - another signature under the same number;
// - other counts for the pair in an uneven collective;
// - this rank is in a split, allocate or close that the sender has not begun, while the sender waits in a collective
//   that this rank has not called. The order is wrong then however it goes on; it ends well only if a thread of either
//   rank calls the rest at the same time, so it is judged once it has lasted a while.
std::optional<Error> judge(const CommunicatorState& mine, int source, const Inquiry& theirs, base::Nanoseconds now);

}  // namespace rondo::engine
