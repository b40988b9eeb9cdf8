// scatter: each rank gets its block of the root's input. S = count x ranks.
#include "perf/harness/benchmark.hpp"

int main(int argc, char** argv) {
  using namespace rondo::perf;
  return run_benchmark({
                           .name = "scatter_perf",
                           .title = "each rank gets its block of the root's input",
                           .input = Extent::per_rank,
                           .root = RootRole::source,
                           .bus_factor = bus_factor_all_but_one,
                           .issue =
                               [](const Call& call) {
                                 call.communicator.scatter(call.input, call.output, call.count, call.type, call.root);
                               },
                           .expected =
                               [](const Shape& shape) {
                                 const std::size_t own_block = static_cast<std::size_t>(shape.rank) * shape.count;
                                 return std::vector<Segment>{{0, shape.count, shape.root, own_block}};
                               },
                       },
                       argc, argv);
}
