#include "perf/harness/benchmark.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/session.hpp"

#include <fmt/format.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace rondo::perf {
namespace {

enum ExitCode { right = 0, wrong_values = 1, bad_options = 2, failed = 3 };

// Whether a launcher started this process: then its ranks are used, and a mistake in what it set is an error. Launchers
// that the library does not know count too: each of their ranks running alone would look like a result. A Slurm batch
// script has a rank as well, but only srun makes a step.
bool started_by_launcher() {
  const auto is_set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  for (const char* name : {"RONDO_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (is_set(name)) return true;
  }
  return is_set("SLURM_PROCID") && is_set("SLURM_STEP_ID");
}

Communicator join(const Options& options) {
  Config config;
  config.deadline = std::chrono::seconds(options.timeout_seconds);
  if (started_by_launcher()) return Communicator::from_environment(config);
  return std::move(Communicator::create_local(1, config).front());
}

void complain(int rank, const char* what) {
  const std::string who = rank < 0 ? "a rank that has not joined" : fmt::format("rank {}", rank);
  std::fputs(fmt::format("{}: {}\n", who, what).c_str(), stderr);
}

}  // namespace

int run_benchmark(const Benchmark& benchmark, int argc, char** argv) {
  int rank = -1;
  try {
    const Options options = parse_options({argv + 1, argv + argc});
    if (options.help) {
      std::fputs(help_text(benchmark.name, benchmark.title).c_str(), stdout);
      return right;
    }
    Communicator communicator = join(options);
    rank = communicator.rank();
    const std::uint64_t wrong = Session(benchmark, options, communicator, stdout).run();
    communicator.close();
    return wrong == 0 ? right : wrong_values;
  } catch (const UsageError& error) {
    std::fputs(fmt::format("{}: {}\n", benchmark.name, error.what()).c_str(), stderr);
    return bad_options;
  } catch (const std::exception& error) {
    complain(rank, error.what());
    return failed;
  }
}

}  // namespace rondo::perf
