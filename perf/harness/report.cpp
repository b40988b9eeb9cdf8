#include "perf/harness/report.hpp"

#include <rondo/error.hpp>
#include <rondo/version.hpp>

#include <fmt/format.h>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace rondo::perf {
namespace {

// Six significant places at most, as wide as the column: 0.08, 12.34, 1234.5, 74130.
std::string time_text(double microseconds) {
  const int places = microseconds < 100 ? 2 : microseconds < 10000 ? 1 : 0;
  return fmt::format("{:.{}f}", microseconds, places);
}

std::string half(const std::optional<Measurement>& measurement, const Options& options) {
  std::string text;
  if (!measurement) {
    text = fmt::format("  {:>8}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
    if (options.iteration_statistics) text += fmt::format("  {:>8}  {:>8}  {:>8}  {:>8}", "N/A", "N/A", "N/A", "N/A");
    return text;
  }
  text =
      fmt::format("  {:>8}  {:>6.2f}  {:>6.2f}  {:>6}", time_text(measurement->time), measurement->algorithm_bandwidth,
                  measurement->bus_bandwidth, measurement->wrong ? fmt::to_string(*measurement->wrong) : "N/A");
  if (measurement->iterations) {
    const Summary& summary = *measurement->iterations;
    text += fmt::format("  {:>8}  {:>8}  {:>8}  {:>8}", time_text(summary.min), time_text(summary.median),
                        time_text(summary.p99), time_text(summary.p999));
  }
  return text;
}

nlohmann::ordered_json half_json(const Measurement& measurement) {
  nlohmann::ordered_json json = {{"time_us", measurement.time},
                                 {"algbw_gb_s", measurement.algorithm_bandwidth},
                                 {"busbw_gb_s", measurement.bus_bandwidth}};
  json["wrong"] = measurement.wrong ? nlohmann::ordered_json(*measurement.wrong) : nlohmann::ordered_json(nullptr);
  if (measurement.iterations) {
    const Summary& summary = *measurement.iterations;
    json["iterations_us"] = {{"min", summary.min}, {"mean", summary.mean},  {"median", summary.median},
                             {"p99", summary.p99}, {"p99.9", summary.p999}, {"max", summary.max}};
  }
  return json;
}

}  // namespace

Totals totals_of(const Report& report) {
  Totals totals;
  double sum = 0;
  std::size_t halves = 0;
  const auto add = [&](const Measurement& measurement) {
    totals.wrong += measurement.wrong.value_or(0);
    sum += measurement.bus_bandwidth;
    ++halves;
  };
  for (const Row& row : report.rows) {
    add(row.out_of_place);
    if (row.in_place) add(*row.in_place);
  }
  if (halves > 0) totals.average_bus_bandwidth = sum / static_cast<double>(halves);
  return totals;
}

std::string header_lines(const Report& report, const Options& options) {
  const bool multiplies = options.step_factor > 1;
  std::string text = fmt::format(
      "# {} Rondo {} nRanks {} nThread 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} "
      "validation: {} windows: {}\n#\n# Using ranks\n",
      report.benchmark, report.version, report.ranks.size(), options.min_bytes, options.max_bytes,
      multiplies ? options.step_factor : options.step_bytes, multiplies ? "factor" : "bytes", options.warmup,
      options.iterations, options.aggregated, options.checks, options.windows ? 1 : 0);
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    text += fmt::format("#  Rank {:>3} Pid {:>7} on {}\n", rank, report.ranks[rank].process, report.ranks[rank].host);
  }
  return text + "#\n";
}

std::string column_lines(const Options& options) {
  std::string names = fmt::format("  {:>8}  {:>6}  {:>6}  {:>6}", "time", "algbw", "busbw", "#wrong");
  std::string units = fmt::format("  {:>8}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  if (options.iteration_statistics) {
    names += fmt::format("  {:>8}  {:>8}  {:>8}  {:>8}", "min", "median", "p99", "p99.9");
    units += fmt::format("  {:>8}  {:>8}  {:>8}  {:>8}", "(us)", "(us)", "(us)", "(us)");
  }
  const std::size_t time_of_day = options.timestamps ? 21 : 0;
  const std::string time_name = options.timestamps ? fmt::format("{:>{}}", "timestamp", time_of_day) : "";
  const std::string blank(time_of_day, ' ');
  // "#" takes the first column of the size.
  const auto left = [&](const std::string& front, std::string_view size, std::string_view count, std::string_view type,
                        std::string_view op, std::string_view root) {
    std::string line = fmt::format("{}{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", front, size, count, type, op, root);
    line[0] = '#';
    return line;
  };
  const std::string top = fmt::format("{}{:^{}}{:^{}}", left(blank, "", "", "", "", ""), "out-of-place", names.size(),
                                      "in-place", names.size());
  return fmt::format("{}\n{}{}{}\n{}{}{}\n", top, left(time_name, "size", "count", "type", "redop", "root"), names,
                     names, left(blank, "(B)", "(elements)", "", "", ""), units, units);
}

std::string row_line(const Row& row, const Options& options, std::string_view time_of_day) {
  return fmt::format("{}{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n",
                     options.timestamps ? fmt::format("{:>21}", time_of_day) : "", row.bytes, row.count,
                     table_name(row.type), row.op ? table_name(*row.op) : "none", row.root,
                     half(row.out_of_place, options), half(row.in_place, options));
}

std::string footer_lines(const Report& report) {
  const Totals totals = totals_of(report);
  return fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:g}\n#\n", totals.wrong,
                     totals.wrong == 0 ? "OK" : "FAILED", totals.average_bus_bandwidth);
}

std::string to_json(const Report& report, const Options& options) {
  nlohmann::ordered_json json;
  json["version"] = report.version;
  json["benchmark"] = report.benchmark;
  json["options"] = {{"min_bytes", options.min_bytes},   {"max_bytes", options.max_bytes},
                     {"iterations", options.iterations}, {"warmup", options.warmup},
                     {"aggregated", options.aggregated}, {"checks", options.checks},
                     {"windows", options.windows},       {"average", static_cast<int>(options.average)}};
  json["ranks"] = nlohmann::ordered_json::array();
  for (const RankInformation& rank : report.ranks)
    json["ranks"].push_back({{"host", rank.host}, {"pid", rank.process}});
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : report.rows) {
    nlohmann::ordered_json entry = {{"size", row.bytes},
                                    {"count", row.count},
                                    {"type", table_name(row.type)},
                                    {"redop", row.op ? table_name(*row.op) : "none"},
                                    {"root", row.root},
                                    {"out_of_place", half_json(row.out_of_place)}};
    entry["in_place"] = row.in_place ? half_json(*row.in_place) : nlohmann::ordered_json(nullptr);
    json["rows"].push_back(std::move(entry));
  }
  const Totals totals = totals_of(report);
  json["out_of_bounds"] = totals.wrong;
  json["average_bus_bandwidth_gb_s"] = totals.average_bus_bandwidth;
  // A host name is whatever its owner set: bytes that are not UTF-8 must not end the run.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace rondo::perf
