#include "perf/harness/session.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <rondo/version.hpp>

namespace rondo::perf {
namespace {

// After each output, to see writes that go too far.
constexpr std::size_t guard_bytes = 64;
constexpr auto garbage = std::byte{0xa5};

bool is_all_garbage(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == garbage; });
}

void fill_garbage(std::span<std::byte> bytes) {
  if (!bytes.empty()) std::memset(bytes.data(), static_cast<int>(garbage), bytes.size());
}

double microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

Error unwritable(const std::string& file) {
  return {ErrorCode::system, fmt::format("-J {}: the file cannot be written: {}", file, std::strerror(errno)),
          "name a file in a directory that exists and is writable"};
}

std::ofstream open_json(const std::string& file) {
  std::ofstream stream(file);
  if (!stream) throw unwritable(file);
  return stream;
}

}  // namespace

Session::Session(const Benchmark& benchmark, const Options& options, Communicator& communicator, std::FILE* out)
    : benchmark_(benchmark),
      options_(options),
      communicator_(communicator),
      out_(out),
      input_(communicator, options.max_bytes + guard_bytes, options.windows),
      output_(communicator, options.max_bytes + guard_bytes, options.windows) {
  report_.benchmark = benchmark.name;
  report_.version = rondo::version();
}

void Session::print(const std::string& text) {
  if (communicator_.rank() != 0) return;
  std::fputs(text.c_str(), out_);
  std::fflush(out_);
}

std::uint64_t Session::run() {
  if (benchmark_.root != RootRole::none) roots_of(options_, communicator_.size());
  // Opened first: a name that cannot be written must not cost a long run.
  std::ofstream json;
  if (!options_.json_file.empty() && communicator_.rank() == 0) json = open_json(options_.json_file);
  report_.ranks = exchange_rank_information();
  print(header_lines(report_, options_) + column_lines(options_));
  for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
    // For ever means that nobody will read old rows.
    if (options_.cycles == 0) report_.rows.clear();
    sweep_once();
  }
  print(footer_lines(report_));
  if (options_.memory_report) print(fmt::format("# Peak resident memory : {:.1f} MiB\n", peak_resident_mebibytes()));
  if (json.is_open()) {
    json << to_json(report_, options_);
    json.close();
    if (!json) throw unwritable(options_.json_file);
  }
  return totals_of(report_).wrong;
}

void Session::sweep_once() {
  const bool rooted = benchmark_.root != RootRole::none;
  const std::vector<int> roots = rooted ? roots_of(options_, communicator_.size()) : std::vector<int>{-1};
  for (const DataType type : types_of(options_)) {
    std::vector<std::optional<ReduceOp>> ops;
    if (benchmark_.reduces) {
      for (const ReduceOp op : ops_of(options_, type)) ops.emplace_back(op);
    } else {
      ops.emplace_back(std::nullopt);
    }
    for (const auto& op : ops) {
      Pattern pattern(type, op, communicator_.size());
      for (const int root : roots) {
        for (const std::size_t bytes : sweep(options_)) {
          const Row row = measure({type, op, root}, pattern, bytes);
          report_.rows.push_back(row);
          print(row_line(row, options_, options_.timestamps ? time_of_day() : ""));
        }
      }
    }
  }
}

Row Session::measure(const Series& series, Pattern& pattern, std::size_t bytes) {
  const Layout layout = layout_for(benchmark_, bytes, series.type, communicator_.rank(), communicator_.size());
  Row row;
  row.bytes = layout.larger() * size_of(series.type);
  row.count = layout.count;
  row.type = series.type;
  row.op = series.op;
  row.root = series.root;
  row.out_of_place = measure_form(series, pattern, layout, false);
  if (benchmark_.in_place) row.in_place = measure_form(series, pattern, layout, true);
  return row;
}

Measurement Session::measure_form(const Series& series, Pattern& pattern, const Layout& layout, bool in_place) {
  const std::vector<double> times = over_ranks(time(series, pattern, layout, in_place));
  const Summary summary = summarize(times);
  Measurement measurement;
  measurement.time = summary.mean;
  if (options_.iteration_statistics) measurement.iterations = summary;
  const auto bytes = static_cast<double>(layout.larger() * size_of(series.type));
  measurement.algorithm_bandwidth = gigabytes_per_second(bytes, measurement.time);
  measurement.bus_bandwidth = measurement.algorithm_bandwidth * benchmark_.bus_factor(communicator_.size());
  for (int i = 0; i < options_.checks; ++i) {
    measurement.wrong = measurement.wrong.value_or(0) + check(series, pattern, layout, in_place);
  }
  return measurement;
}

void Session::issue(const Series& series, const Pattern& pattern, const Layout& layout, bool in_place,
                    std::size_t index) {
  const std::size_t element = size_of(series.type);
  const std::size_t bytes = layout.larger() * element;
  const std::size_t places = bytes == 0 ? 1 : std::max<std::size_t>(options_.max_bytes / bytes, 1);
  const std::size_t shift = bytes * (index % places);
  std::byte* const output = output_.data() + shift;
  const std::byte* const input = in_place ? output : input_.data() + shift;
  benchmark_.issue({communicator_, input + (in_place ? layout.in_place_input * element : 0),
                    output + (in_place ? layout.in_place_output * element : 0), layout.count, series.type,
                    pattern.reduction(communicator_.rank()), series.root});
}

void Session::iterate(const Series& series, const Pattern& pattern, const Layout& layout, bool in_place,
                      std::size_t iteration) {
  if (options_.aggregated == 1) {
    issue(series, pattern, layout, in_place, iteration);
    return;
  }
  const auto calls = static_cast<std::size_t>(options_.aggregated);
  Group together;
  for (std::size_t i = 0; i < calls; ++i) issue(series, pattern, layout, in_place, iteration * calls + i);
  together.submit();
}

// Microseconds for one operation: the mean of all iterations, or one value an iteration with -I.
std::vector<double> Session::time(const Series& series, const Pattern& pattern, const Layout& layout, bool in_place) {
  using Clock = std::chrono::steady_clock;
  const auto iterations = static_cast<std::size_t>(options_.iterations);
  for (int i = 0; i < options_.warmup; ++i) iterate(series, pattern, layout, in_place, static_cast<std::size_t>(i));
  std::vector<double> times;
  if (options_.iteration_statistics) times.reserve(iterations);
  communicator_.barrier();
  const Clock::time_point start = Clock::now();
  Clock::time_point before = start;
  for (std::size_t i = 0; i < iterations; ++i) {
    iterate(series, pattern, layout, in_place, i);
    if (options_.iteration_statistics) {
      const Clock::time_point after = Clock::now();
      times.push_back(microseconds(after - before) / options_.aggregated);
      before = after;
    }
  }
  if (times.empty()) {
    times.push_back(microseconds(Clock::now() - start) / (static_cast<double>(iterations) * options_.aggregated));
  }
  return times;
}

// One fresh run on known data, in places that the timed runs left dirty.
std::uint64_t Session::check(const Series& series, Pattern& pattern, const Layout& layout, bool in_place) {
  const std::size_t element = size_of(series.type);
  const Shape shape{communicator_.rank(), communicator_.size(), series.root, layout.count};
  const bool reads = reads_input(benchmark_, shape.rank, shape.root);
  const bool writes = writes_output(benchmark_, shape.rank, shape.root);
  pattern.reseed(++seed_);

  const std::size_t input_bytes = layout.input_elements * element;
  const std::size_t output_bytes = layout.output_elements * element;
  const std::size_t whole_bytes = layout.larger() * element;
  fill_garbage(output_.span(0, whole_bytes + guard_bytes));
  const Buffer& source = in_place ? output_ : input_;
  const std::span<std::byte> input = source.span(in_place ? layout.in_place_input * element : 0, input_bytes);
  const std::span<std::byte> output = output_.span(in_place ? layout.in_place_output * element : 0, output_bytes);
  if (!in_place) fill_garbage(input);
  if (reads) pattern.fill(shape.rank, 0, input);

  issue(series, pattern, layout, in_place, 0);

  std::uint64_t wrong = 0;
  if (writes) {
    for (const Segment& segment : benchmark_.expected(shape)) {
      const auto part = output.subspan(segment.output_start * element, segment.count * element);
      wrong += pattern.count_wrong(segment.source, segment.source_start, part);
    }
  } else if (!in_place && !is_all_garbage(output)) {
    ++wrong;  // written where only the root may be
  }
  if (!in_place) {
    if (reads) wrong += pattern.count_wrong(shape.rank, 0, input);  // inputs are read only
    if (!is_all_garbage(output_.span(output_bytes, guard_bytes))) ++wrong;
  } else if (!is_all_garbage(output_.span(whole_bytes, guard_bytes))) {
    ++wrong;
  }
  communicator_.all_reduce(std::span(&wrong, 1), ReduceOp::sum);
  return wrong;
}

std::vector<double> Session::over_ranks(std::vector<double> values) {
  ReduceOp op = ReduceOp::avg;
  switch (options_.average) {
    case Average::rank_zero: return values;
    case Average::mean: op = ReduceOp::avg; break;
    case Average::minimum: op = ReduceOp::min; break;
    case Average::maximum: op = ReduceOp::max; break;
  }
  communicator_.all_reduce(std::span(values), op);
  return values;
}

std::vector<RankInformation> Session::exchange_rank_information() {
  struct Entry {
    std::array<char, 60> host{};
    std::int32_t process = 0;
  };
  Entry mine;
  gethostname(mine.host.data(), mine.host.size() - 1);
  mine.process = static_cast<std::int32_t>(getpid());
  std::vector<Entry> all(static_cast<std::size_t>(communicator_.size()));
  communicator_.all_gather(&mine, all.data(), sizeof(Entry), DataType::uint8);
  std::vector<RankInformation> information;
  for (Entry& entry : all) {
    entry.host.back() = '\0';
    information.push_back({entry.host.data(), entry.process});
  }
  return information;
}

double Session::peak_resident_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::int64_t kibibytes = usage.ru_maxrss;
  communicator_.all_reduce(std::span(&kibibytes, 1), ReduceOp::max);
  return static_cast<double>(kibibytes) / 1024.0;
}

}  // namespace rondo::perf
