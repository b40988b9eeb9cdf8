// Call: the run-time half of a collective — buffers, counts, type — that one execution of a plan needs.
#pragma once

#include <rondo/types.hpp>

#include "executor/reduce/reduce.hpp"
#include "plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo::executor {

// A step is cut in slices, so that the receiver works on one while the next is written. A connection must hold so many
// times the plan's slots_min.
inline constexpr std::size_t slices_a_tile = 2;

// Elements of a cache line: what chunks and channels' shares of them are cut at.
constexpr std::size_t grain_of(std::size_t element) { return std::max<std::size_t>(1, 64 / element); }

// Where chunk c of a buffer lies, in elements. Even: chunk c is [c * stride, c * stride + length) clipped to `total`;
// uneven: the two lists, one entry a chunk.
struct ChunkTable {
  std::size_t stride = 0;
  std::size_t total = 0;
  std::vector<std::size_t> offsets;
  std::vector<std::size_t> lengths;

  std::size_t offset(std::int32_t chunk) const {
    const auto c = static_cast<std::size_t>(chunk);
    return lengths.empty() ? std::min(c * stride, total) : offsets[c];
  }
  std::size_t length(std::int32_t chunk) const {
    const auto c = static_cast<std::size_t>(chunk);
    return lengths.empty() ? std::min(stride, total - std::min(c * stride, total)) : lengths[c];
  }
  std::size_t longest() const {
    if (lengths.empty()) return std::min(stride, total);
    return *std::max_element(lengths.begin(), lengths.end());
  }

  // `chunks` chunks of `each` elements.
  static ChunkTable repeated(std::size_t chunks, std::size_t each) { return {each, chunks * each, {}, {}}; }
  // `count` elements cut in `chunks`, at multiples of `grain` elements.
  static ChunkTable cut(std::size_t count, std::size_t chunks, std::size_t grain) {
    const std::size_t even = (count + chunks - 1) / chunks;
    const std::size_t stride = chunks == 1 ? count : (even + grain - 1) / grain * grain;
    return {stride, count, {}, {}};
  }
};

struct Call {
  DataType type = DataType::int8;
  std::size_t element = 1;           // bytes of one element
  ReduceKernel kernel = nullptr;     // null: the collective only copies
  double factor = 1.0;               // of this rank's contribution
  bool scaled = false;               // multiply every read of the input by factor
  std::uint32_t divisor = 1;         // of the finished reduction
  std::uint32_t signature = 0;       // rides in every slot
  bool stream_output = false;        // non-temporal stores to the user's output
  std::size_t slice = 0;             // elements of one message at most
  std::size_t tile = 0;              // elements of one tile of a chunk; a multiple of slice
  const ChunkTable* tables[2] = {};  // of input and output
};

}  // namespace rondo::executor
