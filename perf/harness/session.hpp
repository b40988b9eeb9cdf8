// One rank's run of one benchmark: the sweep, its timing and its checks, over one communicator.
//
// Collective: every rank makes the same Session with the same options and calls run(). Used by the rank's thread only.
// Throws rondo::Error, and UsageError for a root that does not exist.
#pragma once

#include "perf/harness/benchmark.hpp"
#include "perf/harness/buffers.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/pattern.hpp"
#include "perf/harness/report.hpp"

#include <cstdint>
#include <cstdio>
#include <vector>

namespace rondo::perf {

class Session {
 public:
  // Rank 0 prints to `out`. All references outlive the session.
  Session(const Benchmark& benchmark, const Options& options, Communicator& communicator, std::FILE* out);
  // The whole program after start-up. Returns the number of wrong values on all ranks.
  std::uint64_t run();

 private:
  // What stays the same from size to size.
  struct Series {
    DataType type;
    std::optional<ReduceOp> op;
    int root;  // -1: the collective has none
  };

  void sweep_once();
  Row measure(const Series& series, Pattern& pattern, std::size_t bytes);
  Measurement measure_form(const Series& series, Pattern& pattern, const Layout& layout, bool in_place);
  // The call number `index` of a timed loop: successive ones walk through the buffers, so that small sizes in a sweep
  // to large ones don't measure the cache alone, and grouped ones don't overlap while there is room.
  void issue(const Series& series, const Pattern& pattern, const Layout& layout, bool in_place, std::size_t index);
  // One iteration of a timed loop: one call, or -m of them in a group.
  void iterate(const Series& series, const Pattern& pattern, const Layout& layout, bool in_place,
               std::size_t iteration);
  std::vector<double> time(const Series& series, const Pattern& pattern, const Layout& layout, bool in_place);
  std::uint64_t check(const Series& series, Pattern& pattern, const Layout& layout, bool in_place);
  std::vector<double> over_ranks(std::vector<double> values);
  std::vector<RankInformation> exchange_rank_information();
  double peak_resident_mebibytes();
  void print(const std::string& text);

  const Benchmark& benchmark_;
  const Options& options_;
  Communicator& communicator_;
  std::FILE* out_;
  Buffer input_;
  Buffer output_;
  Report report_;
  std::uint64_t seed_ = 0;
};

}  // namespace rondo::perf
