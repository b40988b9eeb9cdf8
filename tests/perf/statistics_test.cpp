#include "perf/harness/statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace rondo::perf {
namespace {

TEST(PerfStatistics, PercentilesAreNearestRank) {
  std::vector<double> samples(1000);
  std::iota(samples.begin(), samples.end(), 1.0);
  EXPECT_EQ(percentile(samples, 0), 1.0);
  EXPECT_EQ(percentile(samples, 50), 500.0);
  EXPECT_EQ(percentile(samples, 99), 990.0);
  EXPECT_EQ(percentile(samples, 99.9), 999.0);
  EXPECT_EQ(percentile(samples, 100), 1000.0);
  samples.resize(100);
  EXPECT_EQ(percentile(samples, 99), 99.0);
  EXPECT_EQ(percentile(samples, 99.9), 100.0);
}

TEST(PerfStatistics, SummaryIgnoresTheOrderOfSamples) {
  const std::vector<double> samples = {5, 1, 4, 2, 3, 9};
  const Summary summary = summarize(samples);
  EXPECT_EQ(summary.min, 1.0);
  EXPECT_EQ(summary.max, 9.0);
  EXPECT_EQ(summary.mean, 4.0);
  EXPECT_EQ(summary.median, 3.5);
  EXPECT_EQ(summary.p99, 9.0);
}

TEST(PerfStatistics, OneSampleIsEveryStatistic) {
  const std::vector<double> samples = {7};
  const Summary summary = summarize(samples);
  EXPECT_EQ(summary.min, 7.0);
  EXPECT_EQ(summary.median, 7.0);
  EXPECT_EQ(summary.p999, 7.0);
  EXPECT_EQ(summarize({}).max, 0.0);
}

TEST(PerfStatistics, BandwidthIsInDecimalGigabytes) {
  EXPECT_DOUBLE_EQ(gigabytes_per_second(1e9, 1e6), 1.0);
  EXPECT_EQ(gigabytes_per_second(8, 0), 0.0);
}

}  // namespace
}  // namespace rondo::perf
