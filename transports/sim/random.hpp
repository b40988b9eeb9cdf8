// Random: the one source of chance in a simulation; the same seed gives the same numbers everywhere.
//
// A value; no threads. SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#pragma once

#include <cstdint>

namespace rondo::transport::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // In [0, bound); bound must be positive. The bias of the remainder does not matter here.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool one_in(std::uint64_t count) { return below(count) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace rondo::transport::sim
