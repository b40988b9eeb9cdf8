// gather: the root gets the inputs of all ranks, in rank order. S = count x ranks.
#include "perf/harness/benchmark.hpp"

int main(int argc, char** argv) {
  using namespace rondo::perf;
  return run_benchmark(
      {
          .name = "gather_perf",
          .title = "the root gets the inputs of all ranks, in rank order",
          .output = Extent::per_rank,
          .root = RootRole::destination,
          .bus_factor = bus_factor_all_but_one,
          .issue =
              [](const Call& call) {
                call.communicator.gather(call.input, call.output, call.count, call.type, call.root);
              },
          .expected = one_block_from_each_rank,
      },
      argc, argv);
}
