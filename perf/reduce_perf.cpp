// reduce: the root gets the reduction of all inputs. S = count.
#include "perf/harness/benchmark.hpp"

int main(int argc, char** argv) {
  using namespace rondo::perf;
  return run_benchmark({
                           .name = "reduce_perf",
                           .title = "the root gets the reduction of all inputs",
                           .root = RootRole::destination,
                           .reduces = true,
                           .bus_factor = bus_factor_one,
                           .issue =
                               [](const Call& call) {
                                 call.communicator.reduce(call.input, call.output, call.count, call.type, call.op,
                                                          call.root);
                               },
                           .expected =
                               [](const Shape& shape) {
                                 return std::vector<Segment>{{0, shape.count, reduced, 0}};
                               },
                       },
                       argc, argv);
}
