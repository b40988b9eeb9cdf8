// sim_replay --seed N [--count M] [--no-kills] [--lose-wake K] [--lose-credit K]: runs seeds again and says what
// happened, with the hash of the schedule. Exits with 1 if a seed failed.
//
// The scenario's sources are included, for a program of the tests is one file.
#include "sim/seed_run.cpp"
#include "sim/sim_world.cpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

int main(int argc, char** argv) {
  using namespace rondo::testing;
  std::uint64_t seed = 1, count = 1;
  SeedOptions options;
  options.stacks = std::make_shared<sim::FiberStackPool>();
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0ULL; };
    if (name == "--seed") seed = number();
    else if (name == "--count") count = number();
    else if (name == "--lose-wake") options.lose_wake = number();
    else if (name == "--lose-credit") options.lose_credit = number();
    else if (name == "--no-kills") options.kills = false;
    else {
      std::fprintf(stderr,
                   "sim_replay: %s is unknown; use --seed N, --count M, --no-kills, --lose-wake K, "
                   "--lose-credit K or --ring-when-armed\n",
                   argv[i]);
      return 2;
    }
  }
  bool failed = false;
  for (std::uint64_t s = seed; s < seed + count; ++s) {
    const SeedResult result = run_seed(s, options);
    failed = failed || !result.failure.empty();
    if (count > 1 && result.failure.empty()) continue;
    fmt::print("{}\n  {} turns, longest operation {} us, trace {:016x}\n  {}\n", result.scenario, result.turns,
               result.longest_operation / 1000, result.trace_hash,
               !result.failure.empty() ? "FAILED: " + result.failure
               : result.all_right      ? std::string("all right")
                                       : std::string("every survivor named the dead rank"));
  }
  return failed ? 1 : 0;
}
