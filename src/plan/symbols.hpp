// The symbols that the checker computes with instead of numbers.
//
// A value is the set of contributions it was reduced from; a contribution is an input chunk of a rank in a tile. The
// fast form is a 64-bit hash that adds up over contributions, so that two sets are equal exactly when their hashes are
// (but for chance, 2^-64 a comparison); the exact form carries the set too and serves to explain a failure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace rondo::plan {

struct Contribution {
  std::int32_t tile = 0;
  std::int32_t origin = 0;
  std::int32_t chunk = 0;
  auto operator<=>(const Contribution&) const = default;
};

inline std::uint64_t hash_of(const Contribution& c) {
  // splitmix64's finaliser (Steele, Lea, Flood 2014) over the three numbers.
  std::uint64_t z = static_cast<std::uint32_t>(c.origin) * 0x9E3779B97F4A7C15ULL +
                    static_cast<std::uint32_t>(c.chunk) * 0xD1B54A32D192ED03ULL +
                    static_cast<std::uint32_t>(c.tile) * 0x8CB92BA72F3D8DD7ULL + 0x632BE59BD9B4E019ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

struct HashValue {
  static constexpr bool exact = false;
  std::uint64_t hash = 0;
  std::int32_t raw = -1;      // the origin, while this is one input chunk untouched
  std::uint8_t finishes = 0;  // times it was marked as the complete reduction
  bool ordered = false;       // one reduction of all raw contributions in ascending rank order
  bool defined = false;

  static HashValue of(const Contribution& c) {
    HashValue value;
    value.hash = hash_of(c);
    value.raw = c.origin;
    value.defined = true;
    return value;
  }
};

// Adds the contributions of `b` to `a`; false and `twice` if one is in both.
inline bool unite(HashValue& a, const HashValue& b, Contribution&) {
  a.hash += b.hash;
  return true;
}

struct ExactValue : HashValue {
  static constexpr bool exact = true;
  std::shared_ptr<const std::vector<Contribution>> set;

  static ExactValue of(const Contribution& c) {
    ExactValue value;
    static_cast<HashValue&>(value) = HashValue::of(c);
    value.set = std::make_shared<const std::vector<Contribution>>(1, c);
    return value;
  }
};

inline bool unite(ExactValue& a, const ExactValue& b, Contribution& twice) {
  a.hash += b.hash;
  std::vector<Contribution> both;
  both.reserve(a.set->size() + b.set->size());
  std::merge(a.set->begin(), a.set->end(), b.set->begin(), b.set->end(), std::back_inserter(both));
  const auto twin = std::adjacent_find(both.begin(), both.end());
  const bool disjoint = twin == both.end();
  if (!disjoint) twice = *twin;
  a.set = std::make_shared<const std::vector<Contribution>>(std::move(both));
  return disjoint;
}

}  // namespace rondo::plan
