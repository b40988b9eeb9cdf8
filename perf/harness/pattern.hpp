// Test data whose reduction is exact in any order, and the values that must come out.
//
// Copying collectives get random bytes. Integers get random bits: their sums and products wrap, which is exact in any
// order. Floating-point reductions get values such that EVERY subset of the ranks has an exact result in the type
// itself, so that partial results may be rounded anywhere, any number of times, without a trace:
//   sum, avg, scaled_sum   whole numbers whose magnitudes, over all ranks, add up to the exact limit of the type at
//                          most (8 for fp8_e5m2, 16 for fp8_e4m3, 256 for bfloat16 ...). With so many ranks that less
//                          than 3 would be left to each, a few drawn ranks hold +1 or -1 each and the others zero.
//   prod                   +1 and -1; four drawn ranks hold a factor of 2.
//   min, max               whole numbers of either sign within the limit.
// So the comparison is exact, but for avg, where one division rounds: 2 units in the last place are allowed there.
//
// Data repeat after `period` elements, a prime, so that a chunk of a usual size in a wrong place shows, and filling and
// checking are as fast as memory. The seed moves the data, so that a stale result of an earlier run shows too.
#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rondo::perf {

class Pattern {
 public:
  static constexpr std::size_t period = 4093;

  // Without an operator: for collectives that only copy. Costs about ranks x period steps. Not thread-safe to change,
  // free to read.
  Pattern(DataType type, std::optional<ReduceOp> op, int ranks);

  void reseed(std::uint64_t seed) { shift_ = seed * 977 % period; }

  // The operator with this rank's factor (for scaled_sum: 1 on even ranks, 2 on odd ones).
  Reduction reduction(int rank) const;

  // Elements start ... of a rank's input. The size of `destination` is a multiple of the element's.
  void fill(int rank, std::size_t start, std::span<std::byte> destination) const;

  // How many elements of `actual` differ from elements start ... of `source`'s input, or of the reduction over all
  // ranks (source < 0).
  std::size_t count_wrong(int source, std::size_t start, std::span<const std::byte> actual) const;

 private:
  std::span<const std::byte> table(int source) const;

  DataType type_;
  std::optional<ReduceOp> op_;
  int ranks_;
  std::size_t shift_ = 0;
  std::vector<std::byte> inputs_;   // one period a rank
  std::vector<std::byte> reduced_;  // one period
};

}  // namespace rondo::perf
