// sendrecv: each rank sends to the next rank and receives from the previous one. S = count. Not in place.
#include "perf/harness/benchmark.hpp"

int main(int argc, char** argv) {
  using namespace rondo::perf;
  return run_benchmark(
      {
          .name = "sendrecv_perf",
          .title = "each rank sends to the next rank and receives from the previous one",
          .in_place = false,
          .bus_factor = bus_factor_one,
          .issue =
              [](const Call& call) {
                const int ranks = call.communicator.size();
                const int rank = call.communicator.rank();
                rondo::Group together;
                call.communicator.send(call.input, call.count, call.type, (rank + 1) % ranks);
                call.communicator.receive(call.output, call.count, call.type, (rank + ranks - 1) % ranks);
                together.submit();
              },
          .expected =
              [](const Shape& shape) {
                return std::vector<Segment>{{0, shape.count, (shape.rank + shape.ranks - 1) % shape.ranks, 0}};
              },
      },
      argc, argv);
}
