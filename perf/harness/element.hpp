// Values of every element type as bits: encoding, and the distance between two encodings.
//
// The benchmarks stand on the public API alone and must not judge the library by its own conversions, so they have
// these.
#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <cstdint>

namespace rondo::perf {

// The bits of the element of `type` nearest to `value` (ties to even; integers truncate towards zero). Out of range:
// infinity where the type has one, otherwise its largest value.
std::uint64_t encode(DataType type, double value);

// An element at any address, as bits, and back.
std::uint64_t load_bits(DataType type, const std::byte* element);
void store_bits(DataType type, std::uint64_t bits, std::byte* element);

// How many representable values lie between two elements, one end counted; 0 for equal ones, -0 equal to +0. A NaN is
// further than any tolerance from everything. Integers: 0 or not 0 only.
std::uint64_t distance(DataType type, std::uint64_t a, std::uint64_t b);

// The largest n such that every whole number of magnitude n or less is exact in the type; floating-point types only.
std::int64_t exact_limit(DataType type);

}  // namespace rondo::perf
