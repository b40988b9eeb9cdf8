// Proofs at run time. The tests prove the built-in generators for all ranks and roots to `proved_to`, and for some
// larger numbers; a communicator of another shape checks its plan once, before it first runs it.
#pragma once

#include "algorithms/registry.hpp"
#include "plan/checker.hpp"

#include <cstdint>

namespace rondo::algorithms {

inline constexpr std::int32_t proved_to = 33;

enum class Proof : std::uint8_t {
  by_tests,    // nothing to do
  checked,     // now, or earlier in this process
  impossible,  // too large to check while users wait; the generator is trusted as its smaller plans were
};

// Makes sure that the algorithm's plan for `shape` is right; throws Error(plan) with what the checker found. The first
// call for a shape takes up to a second, later ones take a look-up: the process remembers what it has checked, and
// generators depend on nothing but the shape. Any thread; threads that ask for the same shape wait for the first.
Proof ensure_proved(const Algorithm& algorithm, const plan::Shape& shape);

}  // namespace rondo::algorithms
