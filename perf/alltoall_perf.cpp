// all_to_all: each rank gets its block of every rank's input. S = count x ranks.
#include "perf/harness/benchmark.hpp"

int main(int argc, char** argv) {
  using namespace rondo::perf;
  return run_benchmark(
      {
          .name = "alltoall_perf",
          .title = "each rank gets its block of every rank's input",
          .input = Extent::per_rank,
          .output = Extent::per_rank,
          .bus_factor = bus_factor_all_but_one,
          .issue =
              [](const Call& call) { call.communicator.all_to_all(call.input, call.output, call.count, call.type); },
          .expected =
              [](const Shape& shape) {
                std::vector<Segment> segments = one_block_from_each_rank(shape);
                for (Segment& segment : segments) {
                  segment.source_start = static_cast<std::size_t>(shape.rank) * shape.count;
                }
                return segments;
              },
      },
      argc, argv);
}
