#include "bench/peers/peer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace rondo::peers {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

struct Command {
  std::string mode;
  std::string collective;
  std::size_t bytes = 0;
  std::size_t iterations = 0;
  std::size_t working_set = 0;
};

Command parse(const std::string& line) {
  Command command;
  std::istringstream words(line);
  words >> command.mode >> command.collective >> command.bytes >> command.iterations >> command.working_set;
  const bool good = words && (command.mode == "total" || command.mode == "each") && command.iterations > 0 &&
                    command.bytes <= std::size_t{4} << 30 && command.working_set <= std::size_t{16} << 30;
  if (!good) throw std::runtime_error("bad command: " + line + " (for example: total all_reduce 8 1000 0)");
  return command;
}

// One pair of buffers a place, in one block.
class Pool {
 public:
  explicit Pool(Peer& peer) : peer_(peer) {}

  void prepare(std::size_t elements, std::size_t working_set) {
    elements_ = elements;
    places_ = std::max<std::size_t>(1, working_set / (2 * sizeof(float) * std::max<std::size_t>(elements, 1)));
    // A cache line between neighbours, and sides that don't share a line.
    stride_ = (elements + 15) / 16 * 16 + 16;
    const std::size_t needed = 2 * stride_ * places_;
    if (needed > capacity_) {
      memory_ = peer_.allocate(needed);
      capacity_ = needed;
    }
    std::fill_n(memory_, needed, 1.0F);
  }
  const float* input(std::size_t i) const { return memory_ + 2 * (i % places_) * stride_; }
  float* output(std::size_t i) const { return memory_ + (2 * (i % places_) + 1) * stride_; }

 private:
  Peer& peer_;
  float* memory_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t elements_ = 0;
  std::size_t stride_ = 0;
  std::size_t places_ = 1;
};

bool has_blocks(std::string_view collective) {
  return collective == "all_gather" || collective == "reduce_scatter" || collective == "all_to_all";
}

double expected_value(std::string_view collective, int ranks) {
  return collective == "all_reduce" || collective == "reduce_scatter" || collective == "reduce" ? ranks : 1.0;
}

// The nearest-rank percentile.
double percentile(const std::vector<double>& sorted, double percent) {
  const double size = static_cast<double>(sorted.size());
  const double rank = std::clamp(std::ceil(percent / 100.0 * size - 1e-9), 1.0, size);
  return sorted[static_cast<std::size_t>(rank) - 1];
}

std::string measure(Peer& peer, Pool& pool, const Command& command) {
  if (!peer.supports(command.collective)) return "{\"unsupported\": true}";
  const auto ranks = static_cast<std::size_t>(peer.size());
  const std::size_t blocks = has_blocks(command.collective) ? ranks : 1;
  const std::size_t count = std::max<std::size_t>(command.bytes / sizeof(float) / blocks, 1);
  pool.prepare(count * blocks, command.working_set);
  const auto call = [&](std::size_t i) { peer.run({command.collective, pool.input(i), pool.output(i), count}); };

  // The other job has just had the caches and the cores.
  const std::size_t warmup = std::clamp<std::size_t>(command.iterations / 10, 2, 1000);
  for (std::size_t i = 0; i < warmup; ++i) call(i);
  peer.barrier();

  char text[160];
  if (command.mode == "total") {
    const Clock::time_point start = Clock::now();
    for (std::size_t i = 0; i < command.iterations; ++i) call(i);
    const double mean = microseconds(Clock::now() - start) / static_cast<double>(command.iterations);
    std::snprintf(text, sizeof text, "{\"us\": %.4f}", peer.maximum(mean));
  } else {
    std::vector<double> times(command.iterations);
    Clock::time_point before = Clock::now();
    for (std::size_t i = 0; i < command.iterations; ++i) {
      call(i);
      const Clock::time_point after = Clock::now();
      times[i] = microseconds(after - before);
      before = after;
    }
    std::sort(times.begin(), times.end());
    const double median = peer.maximum(percentile(times, 50));
    const double p99 = peer.maximum(percentile(times, 99));
    const double p999 = peer.maximum(percentile(times, 99.9));
    std::snprintf(text, sizeof text, R"({"median": %.4f, "p99": %.4f, "p99.9": %.4f})", median, p99, p999);
  }
  // A fast wrong answer is no answer.
  const bool has_output = command.collective != "reduce" || peer.rank() == 0;
  const std::size_t outputs = command.collective == "reduce_scatter" ? count : count * blocks;
  const double expected = expected_value(command.collective, peer.size());
  const float* const output = pool.output(0);
  const bool wrong = has_output && (output[0] != expected || output[outputs - 1] != expected);
  if (peer.maximum(wrong ? 1 : 0) != 0) {
    throw std::runtime_error(command.collective + " of " + std::to_string(command.bytes) +
                             " bytes gave a wrong result");
  }
  return text;
}

}  // namespace

void serve(Peer& peer, const std::string& directory) {
  std::ifstream commands(directory + "/command." + std::to_string(peer.rank()));
  if (!commands) throw std::runtime_error("cannot open the command pipe in " + directory);
  std::ofstream results;
  if (peer.rank() == 0) {
    results.open(directory + "/result");
    if (!results) throw std::runtime_error("cannot open the result pipe in " + directory);
  }
  Pool pool(peer);
  for (std::string line; std::getline(commands, line) && line != "quit";) {
    const std::string answer = measure(peer, pool, parse(line));
    if (peer.rank() == 0) results << answer << std::endl;
  }
}

}  // namespace rondo::peers
