// reduce_scatter: each rank gets its block of the reduction of all inputs. S = count x ranks.
#include "perf/harness/benchmark.hpp"

int main(int argc, char** argv) {
  using namespace rondo::perf;
  return run_benchmark({
                           .name = "reduce_scatter_perf",
                           .title = "each rank gets its block of the reduction of all inputs",
                           .input = Extent::per_rank,
                           .reduces = true,
                           .bus_factor = bus_factor_all_but_one,
                           .issue =
                               [](const Call& call) {
                                 call.communicator.reduce_scatter(call.input, call.output, call.count, call.type,
                                                                  call.op);
                               },
                           .expected =
                               [](const Shape& shape) {
                                 return std::vector<Segment>{
                                     {0, shape.count, reduced, static_cast<std::size_t>(shape.rank) * shape.count}};
                               },
                       },
                       argc, argv);
}
