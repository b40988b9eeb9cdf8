// all_reduce: every rank gets the reduction of all inputs. S = count.
#include "perf/harness/benchmark.hpp"

int main(int argc, char** argv) {
  using namespace rondo::perf;
  return run_benchmark({
                           .name = "all_reduce_perf",
                           .title = "every rank gets the reduction of all inputs",
                           .reduces = true,
                           .bus_factor = bus_factor_twice_all_but_one,
                           .issue =
                               [](const Call& call) {
                                 call.communicator.all_reduce(call.input, call.output, call.count, call.type, call.op);
                               },
                           .expected =
                               [](const Shape& shape) {
                                 return std::vector<Segment>{{0, shape.count, reduced, 0}};
                               },
                       },
                       argc, argv);
}
