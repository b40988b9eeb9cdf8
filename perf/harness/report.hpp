// What is printed: nccl-tests' table, its footer, and the same as JSON. Pure text.
#pragma once

#include "perf/harness/options.hpp"
#include "perf/harness/statistics.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::perf {

// One half of a row: the call out of place, or in place. Times in microseconds for one operation.
struct Measurement {
  double time = 0;
  double algorithm_bandwidth = 0;      // GB/s
  double bus_bandwidth = 0;            // GB/s
  std::optional<std::uint64_t> wrong;  // nothing: not checked
  std::optional<Summary> iterations;   // with -I
};

struct Row {
  std::size_t bytes = 0;
  std::size_t count = 0;
  DataType type = DataType::float32;
  std::optional<ReduceOp> op;
  int root = -1;
  Measurement out_of_place;
  std::optional<Measurement> in_place;  // nothing: the collective has no in-place form
};

struct RankInformation {
  std::string host;
  int process = 0;
};

// Everything a run found.
struct Report {
  std::string benchmark;
  std::string version;  // of the library that ran
  std::vector<RankInformation> ranks;
  std::vector<Row> rows;
};

struct Totals {
  std::uint64_t wrong = 0;
  double average_bus_bandwidth = 0;  // mean over all rows and both forms
};
Totals totals_of(const Report& report);

std::string header_lines(const Report& report, const Options& options);
std::string column_lines(const Options& options);
// `time_of_day` is printed in front with -S.
std::string row_line(const Row& row, const Options& options, std::string_view time_of_day);
std::string footer_lines(const Report& report);

std::string to_json(const Report& report, const Options& options);

}  // namespace rondo::perf
