// Time of one reduction: by type, operator, fan-in and size, beside memcpy of the same bytes.
//
//   bench/reduce_benchmark --benchmark_filter='sum/float32'
//
// Bytes a second count what is read and written once: (sources + destinations) * count * size of an element.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "executor/reduce/reduce.hpp"

namespace rondo::executor {
namespace {

struct Case {
  ReduceOp op;
  DataType type;
  std::size_t sources;
  std::size_t destinations;
  bool stream;
};

void reduce(benchmark::State& state, Case c) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const std::size_t bytes = count * size_of(c.type);
  // Zero bytes are the number zero in every type. A cache line more each, against equal addresses modulo 4 KB.
  std::vector<std::vector<std::byte>> buffers(c.sources + c.destinations, std::vector<std::byte>(bytes + 256));
  std::vector<const void*> sources;
  std::vector<void*> destinations;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    auto* place = buffers[i].data();
    place += (0 - reinterpret_cast<std::uintptr_t>(place)) % 64 + (i % 3) * 64;
    if (i < c.sources) {
      sources.push_back(place);
    } else {
      destinations.push_back(place);
    }
  }
  ReduceArguments arguments;
  arguments.sources = sources.data();
  arguments.source_count = c.sources;
  arguments.destinations = destinations.data();
  arguments.destination_count = c.destinations;
  arguments.count = count;
  arguments.divisor = c.op == ReduceOp::avg ? static_cast<std::uint32_t>(c.sources) : 1;
  arguments.stream_first_destination = c.stream;
  const ReduceKernel kernel = reduce_kernel(c.type, c.op);
  for (auto _ : state) {
    kernel(arguments);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes * buffers.size()));
}

void memcpy_bytes(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> source(bytes), destination(bytes);
  for (auto _ : state) {
    std::memcpy(destination.data(), source.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * state.range(0));
}
BENCHMARK(memcpy_bytes)->Arg(4 << 10)->Arg(64 << 10)->Arg(32 << 20);

void register_case(const Case& c, const std::vector<std::int64_t>& counts) {
  const std::string name = fmt::format("{}/{}/{}to{}{}", name_of(c.op), name_of(c.type), c.sources, c.destinations,
                                       c.stream ? "/stream" : "");
  auto* registered = benchmark::RegisterBenchmark(name.c_str(), reduce, c);
  for (const auto count : counts) registered->Arg(count);
}

void register_all() {
  for (int t = 0; t < data_type_count; ++t) {
    const auto type = static_cast<DataType>(t);
    register_case({ReduceOp::sum, type, 2, 1, false}, {1, 8, 16, 1024, 16384});
    register_case({ReduceOp::avg, type, 2, 1, false}, {1024});
    register_case({ReduceOp::prod, type, 2, 1, false}, {1024});
    register_case({ReduceOp::max, type, 2, 1, false}, {1024});
  }
  for (const std::size_t sources : {1U, 2U, 3U, 4U, 8U, 16U}) {
    for (const std::size_t destinations : {1U, 2U}) {
      register_case({ReduceOp::sum, DataType::float32, sources, destinations, false}, {1, 4, 15, 64, 1024, 16384});
    }
    register_case({ReduceOp::sum, DataType::float32, sources, 1, false}, {4 << 20});
    register_case({ReduceOp::sum, DataType::float32, sources, 1, true}, {4 << 20});
  }
}

}  // namespace
}  // namespace rondo::executor

int main(int argc, char** argv) {
  rondo::executor::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("instruction set", rondo::executor::instruction_set());
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
