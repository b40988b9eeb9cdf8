#include "perf/harness/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace rondo::perf {

double percentile(std::span<const double> sorted, double percent) {
  const auto size = static_cast<double>(sorted.size());
  // The small slack keeps 99 % of 100 samples at the 99th although 0.99 x 100 is not exact in binary.
  const double rank = std::ceil(percent / 100.0 * size - 1e-9);
  const auto index = static_cast<std::size_t>(std::clamp(rank, 1.0, size)) - 1;
  return sorted[index];
}

Summary summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t size = sorted.size();
  Summary summary;
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(size);
  summary.median = (sorted[(size - 1) / 2] + sorted[size / 2]) / 2.0;
  summary.p99 = percentile(sorted, 99.0);
  summary.p999 = percentile(sorted, 99.9);
  return summary;
}

double gigabytes_per_second(double bytes, double microseconds) {
  return microseconds > 0 ? bytes / (microseconds * 1e3) : 0.0;
}

}  // namespace rondo::perf
