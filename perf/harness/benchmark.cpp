#include "perf/harness/benchmark.hpp"

namespace rondo::perf {

Layout layout_for(const Benchmark& benchmark, std::size_t bytes, DataType type, int rank, int ranks) {
  const auto blocks = static_cast<std::size_t>(ranks);
  const bool input_blocks = benchmark.input == Extent::per_rank;
  const bool output_blocks = benchmark.output == Extent::per_rank;
  Layout layout;
  layout.count = bytes / size_of(type) / (input_blocks || output_blocks ? blocks : 1);
  layout.input_elements = layout.count * (input_blocks ? blocks : 1);
  layout.output_elements = layout.count * (output_blocks ? blocks : 1);
  const std::size_t own_block = layout.count * static_cast<std::size_t>(rank);
  if (output_blocks && !input_blocks) layout.in_place_input = own_block;
  if (input_blocks && !output_blocks) layout.in_place_output = own_block;
  return layout;
}

std::vector<Segment> one_block_from_each_rank(const Shape& shape) {
  std::vector<Segment> segments;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    segments.push_back({static_cast<std::size_t>(rank) * shape.count, shape.count, rank, 0});
  }
  return segments;
}

}  // namespace rondo::perf
