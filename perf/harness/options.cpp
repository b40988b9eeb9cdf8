#include "perf/harness/options.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <utility>

namespace rondo::perf {
namespace {

constexpr std::array<std::string_view, data_type_count> type_names = {"int8",  "uint8",  "int32",    "uint32",
                                                                      "int64", "uint64", "half",     "bfloat16",
                                                                      "float", "double", "fp8_e4m3", "fp8_e5m2"};
constexpr std::array<std::string_view, reduce_op_count> op_names = {"sum",    "prod", "min", "max", "avg",
                                                                    "mulsum", "band", "bor", "bxor"};

template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw UsageError(fmt::format(format, std::forward<Arguments>(arguments)...));
}

int parse_int(std::string_view flag, std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    refuse("{} {}: must be a whole number from {} to {}, for example {}", flag, text, low, high, low);
  }
  return value;
}

bool parse_switch(std::string_view flag, std::string_view text) { return parse_int(flag, text, 0, 1) == 1; }

template <class Value, std::size_t size>
std::optional<Value> parse_name(std::string_view flag, std::string_view text,
                                const std::array<std::string_view, size>& names) {
  if (text == "all") return std::nullopt;
  for (std::size_t i = 0; i < size; ++i) {
    const auto value = static_cast<Value>(i);
    if (text == names[i] || text == name_of(value)) return value;
  }
  refuse("{} {}: must be one of {}, or all", flag, text, fmt::join(names, ", "));
}

struct Flag {
  char letter;
  std::string_view name;
  std::string_view argument;
  std::string_view help;
  std::function<void(Options&, std::string_view flag, std::string_view text)> apply;
};

// A flag of nccl-tests that has no meaning here: only the value that changes nothing is taken.
std::function<void(Options&, std::string_view, std::string_view)> only(std::string_view neutral,
                                                                       std::string_view reason) {
  return [neutral, reason](Options&, std::string_view flag, std::string_view text) {
    if (text != neutral) refuse("{} {}: {}; only {} is accepted", flag, text, reason, neutral);
  };
}

constexpr std::size_t most_sizes = 1 << 16;
constexpr int many = std::numeric_limits<int>::max();

const std::vector<Flag>& flags() {
  using Text = std::string_view;
  static const std::vector<Flag> table = {
      {'b', "minbytes", "SIZE", "smallest size (32M)",
       [](Options& o, Text f, Text t) { o.min_bytes = parse_size(f, t); }},
      {'e', "maxbytes", "SIZE", "largest size (32M)",
       [](Options& o, Text f, Text t) { o.max_bytes = parse_size(f, t); }},
      {'i', "stepbytes", "SIZE", "added from size to size (1M)",
       [](Options& o, Text f, Text t) { o.step_bytes = parse_size(f, t); }},
      {'f', "stepfactor", "N", "multiplied from size to size, instead of -i (off)",
       [](Options& o, Text f, Text t) { o.step_factor = static_cast<std::size_t>(parse_int(f, t, 2, many)); }},
      {'n', "iters", "N", "timed iterations (20)",
       [](Options& o, Text f, Text t) { o.iterations = parse_int(f, t, 1, many); }},
      {'w', "warmup_iters", "N", "untimed iterations before (1)",
       [](Options& o, Text f, Text t) { o.warmup = parse_int(f, t, 0, many); }},
      {'m', "agg_iters", "N", "operations grouped in one iteration (1)",
       [](Options& o, Text f, Text t) { o.aggregated = parse_int(f, t, 1, 1 << 16); }},
      {'N', "run_cycles", "N", "times the whole sweep is run (1); 0 for ever",
       [](Options& o, Text f, Text t) { o.cycles = parse_int(f, t, 0, many); }},
      {'o', "op", "OP", "sum prod min max avg mulsum band bor bxor (sum), or all",
       [](Options& o, Text f, Text t) { o.op = parse_name<ReduceOp>(f, t, op_names); }},
      {'d', "datatype", "TYPE",
       "int8 uint8 int32 uint32 int64 uint64 half bfloat16 float double fp8_e4m3 fp8_e5m2 (float), or all",
       [](Options& o, Text f, Text t) { o.type = parse_name<DataType>(f, t, type_names); }},
      {'r', "root", "RANK", "root of rooted collectives (0), or all",
       [](Options& o, Text f, Text t) {
         o.root = t == "all" ? std::nullopt : std::optional<int>(parse_int(f, t, 0, many));
       }},
      {'c', "check", "N", "checks of the result for each size (1); 0 for none",
       [](Options& o, Text f, Text t) { o.checks = parse_int(f, t, 0, many); }},
      {'T', "timeout", "SECONDS", "deadline of every operation (60)",
       [](Options& o, Text f, Text t) { o.timeout_seconds = parse_int(f, t, 1, 1 << 20); }},
      {'a', "average", "HOW", "time over ranks: 0 rank 0, 1 mean, 2 min, 3 max (1)",
       [](Options& o, Text f, Text t) { o.average = static_cast<Average>(parse_int(f, t, 0, 3)); }},
      {'R', "local_register", "0|1|2", "buffers in window memory for 1 and 2 (0)",
       [](Options& o, Text f, Text t) { o.windows = parse_int(f, t, 0, 2) != 0; }},
      {'I', "iteration_timing", "0|1", "adds min, median, p99 and p99.9 over iterations (0)",
       [](Options& o, Text f, Text t) { o.iteration_statistics = parse_switch(f, t); }},
      {'S', "report_timestamps", "0|1", "adds the time of day to each line (0)",
       [](Options& o, Text f, Text t) { o.timestamps = parse_switch(f, t); }},
      {'M', "memory_report", "0|1", "prints the peak resident memory (0)",
       [](Options& o, Text f, Text t) { o.memory_report = parse_switch(f, t); }},
      {'J', "output_file", "FILE", "writes every row as JSON",
       [](Options& o, Text f, Text t) {
         if (t.empty()) refuse("{}: needs the name of a file, for example result.json", f);
         o.json_file = t;
       }},
      {'t', "nthreads", "1", "threads a process: one rank is one process",
       only("1", "one rank is one process, so more ranks come from the launcher (rondo run -n 4 -- ...)")},
      {'g', "ngpus", "1", "devices a thread: accepted for compatibility",
       only("1", "one rank is one process, so more ranks come from the launcher (rondo run -n 4 -- ...)")},
      {'p', "parallel_init", "0", "accepted for compatibility", only("0", "there is one rank a process to initialise")},
      {'z', "blocking", "0", "accepted for compatibility", only("0", "calls already block, there is no device stream")},
      {'y', "stream_null", "0", "accepted for compatibility", only("0", "there is no CUDA stream on this path")},
      {'G', "cudagraph", "0", "accepted for compatibility", only("0", "CUDA graphs need a CUDA build")},
      {'C', "report_cputime", "0", "accepted for compatibility",
       only("0", "a blocking call's latency is its CPU time already")},
  };
  return table;
}

}  // namespace

std::string_view table_name(DataType type) { return type_names.at(static_cast<std::size_t>(type)); }
std::string_view table_name(ReduceOp op) { return op_names.at(static_cast<std::size_t>(op)); }

std::size_t parse_size(std::string_view flag, std::string_view text) {
  std::size_t value = 0;
  const char* const first = text.data();
  const char* const last = first + text.size();
  const auto [end, error] = std::from_chars(first, last, value);
  std::string_view unit(end, static_cast<std::size_t>(last - end));
  unsigned shift = 0;
  bool good = error == std::errc{};
  if (!unit.empty()) {
    constexpr std::string_view upper = "BKMGT";
    constexpr std::string_view lower = "bkmgt";
    std::size_t power = upper.find(unit.front());
    if (power == std::string_view::npos) power = lower.find(unit.front());
    good = good && power != std::string_view::npos;
    shift = good ? static_cast<unsigned>(power) * 10 : 0;
    unit.remove_prefix(1);
    good = good && (unit.empty() || (power != 0 && (unit == "B" || unit == "iB")));
  }
  // A quarter of the address space: sums and products of a few sizes cannot overflow.
  good = good && value <= (std::numeric_limits<std::size_t>::max() >> (shift + 2));
  if (!good) refuse("{} {}: must be a number of bytes, for example 8, 1K, 64M or 1G", flag, text);
  return value << shift;
}

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "-h" || argument == "--help") {
      options.help = true;
      return options;
    }
    const Flag* found = nullptr;
    std::optional<std::string_view> value;
    std::string_view written = argument;
    if (argument.starts_with("--")) {
      const std::size_t equals = argument.find('=');
      written = argument.substr(0, equals);
      if (equals != std::string_view::npos) value = argument.substr(equals + 1);
      for (const Flag& flag : flags()) {
        if (flag.name == written.substr(2)) found = &flag;
      }
    } else if (argument.size() >= 2 && argument[0] == '-') {
      written = argument.substr(0, 2);
      if (argument.size() > 2) value = argument.substr(2);
      for (const Flag& flag : flags()) {
        if (flag.letter == argument[1]) found = &flag;
      }
    }
    if (found == nullptr) refuse("{}: unknown option (--help lists all)", argument);
    if (!value) {
      if (i + 1 == arguments.size()) refuse("{}: needs a value, {}", written, found->help);
      value = arguments[++i];
    }
    found->apply(options, written, *value);
  }
  if (options.min_bytes > options.max_bytes) {
    refuse("-b {} -e {}: the smallest size must not exceed the largest, for example -b 8 -e 64M", options.min_bytes,
           options.max_bytes);
  }
  if (options.step_factor == 1 && options.step_bytes == 0) {
    refuse("-i 0: the step must be at least 1 byte, for example 1M; or use -f 2");
  }
  if (options.step_factor == 1 && (options.max_bytes - options.min_bytes) / options.step_bytes >= most_sizes) {
    refuse("-b {} -e {} -i {}: a sweep has at most {} sizes, for example with -i 1M", options.min_bytes,
           options.max_bytes, options.step_bytes, most_sizes);
  }
  if (options.step_factor > 1 && options.min_bytes == 0) {
    refuse("-b 0 -f {}: a factor does not leave zero; use -b 8", options.step_factor);
  }
  if (options.op && options.type && !is_valid(*options.type, *options.op)) {
    refuse("-d {} -o {}: the type does not have that operator; use -o sum", table_name(*options.type),
           table_name(*options.op));
  }
  return options;
}

std::string help_text(std::string_view program, std::string_view title) {
  std::string text = fmt::format("{}: {}\n\n", program, title);
  for (const Flag& flag : flags()) {
    text += fmt::format("  -{}, --{:<26} {}\n", flag.letter, fmt::format("{} {}", flag.name, flag.argument), flag.help);
  }
  text += "  -h, --help\n\nExit code: 0 right, 1 wrong values, 2 bad options, 3 an error of the library or system.\n";
  return text;
}

std::vector<std::size_t> sweep(const Options& options) {
  std::vector<std::size_t> sizes;
  std::size_t size = options.min_bytes;
  for (;;) {
    sizes.push_back(size);
    const bool multiplies = options.step_factor > 1;
    if (multiplies ? size > options.max_bytes / options.step_factor : options.max_bytes - size < options.step_bytes) {
      return sizes;
    }
    size = multiplies ? size * options.step_factor : size + options.step_bytes;
  }
}

bool is_valid(DataType type, ReduceOp op) {
  if (is_integer(type)) return op != ReduceOp::scaled_sum;
  return !is_bitwise(op);
}

std::vector<DataType> types_of(const Options& options) {
  if (options.type) return {*options.type};
  std::vector<DataType> types;
  for (int i = 0; i < data_type_count; ++i) types.push_back(static_cast<DataType>(i));
  return types;
}

std::vector<ReduceOp> ops_of(const Options& options, DataType type) {
  std::vector<ReduceOp> ops;
  for (int i = 0; i < reduce_op_count; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    if (is_valid(type, op) && (!options.op || *options.op == op)) ops.push_back(op);
  }
  return ops;
}

std::vector<int> roots_of(const Options& options, int ranks) {
  if (options.root) {
    if (*options.root >= ranks)
      refuse("-r {}: the root must be below the {} ranks, for example 0", *options.root, ranks);
    return {*options.root};
  }
  std::vector<int> roots;
  for (int rank = 0; rank < ranks; ++rank) roots.push_back(rank);
  return roots;
}

}  // namespace rondo::perf
