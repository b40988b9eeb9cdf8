// A 64-bit hash of a rank's plan: the same on every machine of one byte order, for signatures and for remembering what
// has been checked. Equal plans hash equal; loops and their unrolled forms are different plans. Pure; any thread.
#pragma once

#include "plan/plan.hpp"

#include <cstdint>

namespace rondo::plan {

std::uint64_t hash_of(const RankPlan& plan);

}  // namespace rondo::plan
