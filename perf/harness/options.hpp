// The command line of the benchmark programs: nccl-tests' flags with its defaults.
//
// Pure: parsing reads nothing but its arguments. Throws UsageError, whose text states the flag, the value, the
// constraint and a value that works.
#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::perf {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How the times of the ranks become one figure (-a).
enum class Average { rank_zero, mean, minimum, maximum };

struct Options {
  std::size_t min_bytes = std::size_t{32} << 20;
  std::size_t max_bytes = std::size_t{32} << 20;
  std::size_t step_bytes = std::size_t{1} << 20;
  std::size_t step_factor = 1;  // 1: step_bytes counts
  int iterations = 20;
  int warmup = 1;
  int aggregated = 1;
  int cycles = 1;  // 0: for ever
  // Nothing: all that are valid.
  std::optional<ReduceOp> op = ReduceOp::sum;
  std::optional<DataType> type = DataType::float32;
  std::optional<int> root = 0;
  int checks = 1;
  int timeout_seconds = 60;
  Average average = Average::mean;
  bool windows = false;
  bool iteration_statistics = false;
  bool timestamps = false;
  bool memory_report = false;
  std::string json_file;
  bool help = false;
};

// `arguments` without the program's name.
Options parse_options(const std::vector<std::string>& arguments);
// The text of --help.
std::string help_text(std::string_view program, std::string_view title);

// "8", "1K", "64M", "1G", "2T" (powers of 1024; a trailing B or iB is allowed).
std::size_t parse_size(std::string_view flag, std::string_view text);

// The sizes of a sweep, ascending; never empty.
std::vector<std::size_t> sweep(const Options& options);
std::vector<DataType> types_of(const Options& options);
// The operators to run for a type: the one asked for if the type has it, or all that it has.
std::vector<ReduceOp> ops_of(const Options& options, DataType type);
bool is_valid(DataType type, ReduceOp op);
// The roots to run. Throws UsageError for a root outside the communicator.
std::vector<int> roots_of(const Options& options, int ranks);

// nccl-tests' names of the types ("float", "half", "fp8_e4m3"), as its tables print them.
std::string_view table_name(DataType type);
std::string_view table_name(ReduceOp op);

}  // namespace rondo::perf
