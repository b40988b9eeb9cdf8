// Every perf program over real processes ends with right values, for many rank counts, types and transports.
#include "multiprocess/job.hpp"

#include <tuple>

namespace rondo::test {
namespace {

constexpr const char* right = "# Out of bounds values : 0 OK";

const char* const benchmarks[] = {"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf",
                                  "broadcast_perf",  "reduce_perf",     "alltoall_perf",
                                  "gather_perf",     "scatter_perf",    "sendrecv_perf"};
const char* const transport_lists[] = {"shm,tcp", "tcp"};

void expect_right(const std::string& benchmark, int ranks, std::vector<std::string> options, const std::string& list,
                  std::chrono::seconds limit = std::chrono::seconds(120)) {
  options.insert(options.begin(), program(benchmark));
  options.insert(options.end(), {"-c", "1"});
  Job job(ranks, options, {"RONDO_TRANSPORTS=" + list}, limit);
  EXPECT_EQ(job.finish(), 0) << job.story();
  EXPECT_EQ(count(job.text(), right), 1) << job.story();
}

std::string list_name(const char* list) { return std::string(list) == "tcp" ? "tcp" : "all"; }

using BenchmarkAndList = std::tuple<const char*, const char*>;
std::string name_of_pair(const testing::TestParamInfo<BenchmarkAndList>& info) {
  return std::string(std::get<0>(info.param)) + "_" + list_name(std::get<1>(info.param));
}

class EveryBenchmark : public testing::TestWithParam<BenchmarkAndList> {};

TEST_P(EveryBenchmark, IsRightOverFourProcesses) {
  const auto& [benchmark, list] = GetParam();
  expect_right(benchmark, 4, {"-b", "8", "-e", "512K", "-f", "4", "-n", "2", "-w", "1"}, list);
}
TEST_P(EveryBenchmark, IsRightForEveryRankCount) {
  const auto& [benchmark, list] = GetParam();
  for (const int ranks : {1, 2, 3, 5, 7, 8, 16}) {
    SCOPED_TRACE(ranks);
    expect_right(benchmark, ranks, {"-b", "8", "-e", "64K", "-f", "64", "-n", "1", "-w", "1"}, list);
  }
}
TEST_P(EveryBenchmark, IsRightInWindows) {
  const auto& [benchmark, list] = GetParam();
  expect_right(benchmark, 3, {"-b", "4", "-e", "256K", "-f", "16", "-n", "2", "-w", "1", "-R", "1"}, list);
}
INSTANTIATE_TEST_SUITE_P(Everyday, EveryBenchmark,
                         testing::Combine(testing::ValuesIn(benchmarks), testing::ValuesIn(transport_lists)),
                         name_of_pair);

class EveryBenchmarkLong : public testing::TestWithParam<BenchmarkAndList> {};

TEST_P(EveryBenchmarkLong, IsRightTo64MegabytesOverFourProcesses) {
  const auto& [benchmark, list] = GetParam();
  expect_right(benchmark, 4, {"-b", "8", "-e", "64M", "-f", "4"}, list, std::chrono::minutes(10));
}
TEST_P(EveryBenchmarkLong, IsRightForAllTypesAndOperatorsAtOneMegabyte) {
  const auto& [benchmark, list] = GetParam();
  expect_right(benchmark, 4, {"-b", "1M", "-e", "1M", "-d", "all", "-o", "all", "-n", "2"}, list,
               std::chrono::minutes(10));
}
TEST_P(EveryBenchmarkLong, IsRightForEveryRankCountToOneMegabyte) {
  const auto& [benchmark, list] = GetParam();
  for (const int ranks : {1, 2, 3, 5, 7, 8, 16}) {
    SCOPED_TRACE(ranks);
    expect_right(benchmark, ranks, {"-b", "8", "-e", "1M", "-f", "4", "-n", "2"}, list, std::chrono::minutes(5));
  }
}
TEST_P(EveryBenchmarkLong, IsRightForEveryRoot) {
  const auto& [benchmark, list] = GetParam();
  expect_right(benchmark, 5, {"-b", "8", "-e", "1M", "-f", "32", "-n", "2", "-r", "all"}, list,
               std::chrono::minutes(5));
}
INSTANTIATE_TEST_SUITE_P(All, EveryBenchmarkLong,
                         testing::Combine(testing::ValuesIn(benchmarks), testing::ValuesIn(transport_lists)),
                         name_of_pair);

class AllReduceTypes : public testing::TestWithParam<const char*> {};

TEST_P(AllReduceTypes, AreRightWithEveryOperator) {
  expect_right("all_reduce_perf", 4, {"-b", "64K", "-e", "64K", "-d", GetParam(), "-o", "all", "-n", "1", "-w", "1"},
               "shm,tcp");
}
INSTANTIATE_TEST_SUITE_P(Everyday, AllReduceTypes,
                         testing::Values("int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "bfloat16",
                                         "float", "double", "fp8_e4m3", "fp8_e5m2"));

TEST(Processes, LeaveNothingInDevShm) {
  const auto before = named_shared_memory();
  expect_right("all_reduce_perf", 4, {"-b", "8", "-e", "1M", "-f", "32", "-n", "2"}, "shm,tcp");
  EXPECT_EQ(named_shared_memory(), before);
}

}  // namespace
}  // namespace rondo::test
