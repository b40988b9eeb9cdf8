// Order statistics of repeated timings.
#pragma once

#include <span>

namespace rondo::perf {

struct Summary {
  double min = 0;
  double mean = 0;
  double median = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

// The smallest sample that at least `percent` of all samples do not exceed (the nearest-rank percentile). `sorted` is
// ascending and not empty; percent from 0 to 100.
double percentile(std::span<const double> sorted, double percent);

// The median is the mean of the two middle samples when their number is even. All zero for no samples.
Summary summarize(std::span<const double> samples);

// GB/s (10^9) that `bytes` in `microseconds` make; 0 for no time.
double gigabytes_per_second(double bytes, double microseconds);

}  // namespace rondo::perf
