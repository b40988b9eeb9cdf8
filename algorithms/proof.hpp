// Proofs at run time. The tests prove the built-in generators for the shapes that proved_by_tests() names; a
// communicator of another shape checks its plan once, before it first runs it.
#pragma once

#include "algorithms/registry.hpp"
#include "plan/checker.hpp"

#include <cstdint>

namespace rondo::algorithms {

// All ranks and roots to 33, and some larger numbers, to `largest_proved`. The tests prove just these.
inline constexpr std::int32_t largest_proved = 128;
bool proved_by_tests(const plan::Shape& shape);

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
