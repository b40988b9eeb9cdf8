// Which algorithm runs a collective: pins by size range, determinism, then paths, size and rank count.
//
// Pure: the same on every rank for the same settings (which joining compares), so ranks can't choose differently.
#pragma once

#include "algorithms/registry.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::tuner {

// One range of RONDO_ALGO: sizes in [from, to) of `collective` use `algorithm`.
struct Pin {
  Collective collective;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  const algorithms::Algorithm* algorithm = nullptr;
};

// "all_reduce:0-4k=one_shot,4k-inf=ring;broadcast:0-inf=chain". Throws Error(configuration) naming the part that is
// wrong and what is accepted.
std::vector<Pin> parse_pins(std::string_view text);

// How the ranks of a communicator reach each other. The same on all of them, or they would choose differently.
enum class Paths : std::uint8_t {
  memory,  // every pair shares memory: a message costs a few cache lines
  wires,   // some pair doesn't: a message costs system calls and a network's latency
};

struct Policy {
  std::vector<Pin> pins;
  bool deterministic = false;
};

// The plan that serves an uneven form is that of its even sibling.
Collective even_form(Collective collective);

// `bytes` as nccl-tests counts them (the larger side). Throws Error(configuration) if a pin names an algorithm that
// does not exist for the shape, or is not deterministic where that is asked for.
const algorithms::Algorithm& choose(const Policy& policy, const plan::Shape& shape, std::uint64_t bytes,
                                    Paths paths = Paths::memory);

// One line a candidate: name, whether it runs, why (not).
std::string explain(const Policy& policy, const plan::Shape& shape, std::uint64_t bytes, Paths paths = Paths::memory);

}  // namespace rondo::tuner
