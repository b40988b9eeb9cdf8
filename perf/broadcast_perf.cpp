// broadcast: every rank gets the root's input. S = count.
#include "perf/harness/benchmark.hpp"

int main(int argc, char** argv) {
  using namespace rondo::perf;
  return run_benchmark({
                           .name = "broadcast_perf",
                           .title = "every rank gets the root's input",
                           .root = RootRole::source,
                           .bus_factor = bus_factor_one,
                           .issue =
                               [](const Call& call) {
                                 call.communicator.broadcast(call.input, call.output, call.count, call.type, call.root);
                               },
                           .expected =
                               [](const Shape& shape) {
                                 return std::vector<Segment>{{0, shape.count, shape.root, 0}};
                               },
                       },
                       argc, argv);
}
