#include "perf/harness/report.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "perf/harness/benchmark.hpp"

namespace rondo::perf {
namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

Row example_row() {
  Row row;
  row.bytes = 1024;
  row.count = 256;
  row.op = ReduceOp::sum;
  row.out_of_place = {
      .time = 2.5, .algorithm_bandwidth = 0.4096, .bus_bandwidth = 0.6144, .wrong = 0, .iterations = {}};
  row.in_place = {.time = 123456, .algorithm_bandwidth = 1, .bus_bandwidth = 3, .wrong = 7, .iterations = {}};
  return row;
}

TEST(PerfReport, ARowHasNcclTestsColumnsInTheirOrder) {
  EXPECT_EQ(words(row_line(example_row(), {}, "")),
            (std::vector<std::string>{"1024", "256", "float", "sum", "-1", "2.50", "0.41", "0.61", "0", "123456",
                                      "1.00", "3.00", "7"}));
}

TEST(PerfReport, WhatWasNotMeasuredIsNotAvailable) {
  Row row = example_row();
  row.op = std::nullopt;
  row.in_place = std::nullopt;
  row.out_of_place.wrong = std::nullopt;
  EXPECT_EQ(words(row_line(row, {}, "")),
            (std::vector<std::string>{"1024", "256", "float", "none", "-1", "2.50", "0.41", "0.61", "N/A", "N/A", "N/A",
                                      "N/A", "N/A"}));
}

TEST(PerfReport, ColumnTitlesStandOverTheirColumns) {
  Options options;
  for (const bool statistics : {false, true}) {
    for (const bool timestamps : {false, true}) {
      options.iteration_statistics = statistics;
      options.timestamps = timestamps;
      Row row = example_row();
      if (statistics) row.out_of_place.iterations = row.in_place->iterations = Summary{};
      std::istringstream lines(column_lines(options));
      std::string top, names, units;
      std::getline(lines, top);
      std::getline(lines, names);
      std::getline(lines, units);
      const std::string line = row_line(row, options, "2026-01-02 03:04:05");
      EXPECT_EQ(names.size(), line.size() - 1);
      EXPECT_EQ(units.size(), line.size() - 1);
      EXPECT_EQ(names[0], '#');
      EXPECT_EQ(names.find("count") + 5, line.find(" 256 ") + 4);
    }
  }
}

TEST(PerfReport, FooterSumsWrongValuesAndAveragesBothForms) {
  Report report;
  report.rows = {example_row()};
  EXPECT_EQ(footer_lines(report).substr(0, 36), "# Out of bounds values : 7 FAILED\n# ");
  EXPECT_DOUBLE_EQ(totals_of(report).average_bus_bandwidth, (0.6144 + 3) / 2);
  report.rows[0].in_place->wrong = 0;
  EXPECT_NE(footer_lines(report).find("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.8072\n"),
            std::string::npos)
      << footer_lines(report);
}

TEST(PerfReport, JsonHoldsEveryRow) {
  Report report;
  report.benchmark = "all_reduce_perf";
  report.ranks = {{"host \xff", 12}};
  report.rows = {example_row(), example_row()};
  report.rows[1].in_place = std::nullopt;
  const auto json = nlohmann::json::parse(to_json(report, {}));
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["in_place"]["wrong"], 7);
  EXPECT_EQ(json["rows"][0]["out_of_place"]["time_us"], 2.5);
  EXPECT_TRUE(json["rows"][1]["in_place"].is_null());
  EXPECT_EQ(json["out_of_bounds"], 7);
}

TEST(PerfLayout, TheSizeIsTheLargerSide) {
  Benchmark all_gather;
  all_gather.output = Extent::per_rank;
  const Layout layout = layout_for(all_gather, 1000, DataType::float32, 2, 3);
  EXPECT_EQ(layout.count, 83u);  // 250 elements, in 3 whole blocks
  EXPECT_EQ(layout.input_elements, 83u);
  EXPECT_EQ(layout.output_elements, 249u);
  EXPECT_EQ(layout.in_place_input, 166u);
  EXPECT_EQ(layout.in_place_output, 0u);

  Benchmark reduce_scatter;
  reduce_scatter.input = Extent::per_rank;
  EXPECT_EQ(layout_for(reduce_scatter, 64, DataType::float64, 1, 4).in_place_output, 2u);
  EXPECT_EQ(layout_for(Benchmark{}, 64, DataType::float64, 1, 4).count, 8u);
  EXPECT_EQ(layout_for(all_gather, 8, DataType::float32, 0, 4).count, 0u);
}

TEST(PerfLayout, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor_twice_all_but_one(8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor_all_but_one(8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor_one(8), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor_twice_all_but_one(1), 0.0);
}

}  // namespace
}  // namespace rondo::perf
