// all_gather: every rank gets the inputs of all ranks, in rank order. S = count x ranks.
#include "perf/harness/benchmark.hpp"

int main(int argc, char** argv) {
  using namespace rondo::perf;
  return run_benchmark(
      {
          .name = "all_gather_perf",
          .title = "every rank gets the inputs of all ranks, in rank order",
          .output = Extent::per_rank,
          .bus_factor = bus_factor_all_but_one,
          .issue =
              [](const Call& call) { call.communicator.all_gather(call.input, call.output, call.count, call.type); },
          .expected = one_block_from_each_rank,
      },
      argc, argv);
}
