// Time of one message through a FIFO of slots, between ranks that share memory:
//
//   one_thread/BYTES   publish, peek, release, with their doorbells: what a message costs before any line travels
//   ping_pong/BYTES    there and back between two threads, which wait as the executor does; one_way is half of it
//
//   bench/slot_benchmark --benchmark_filter=ping_pong
//
// To 48 bytes the payload rides in the header line, above it lies in the slot. Each hop copies it out of one slot line
// into the next, as a step that passes a message on does. The two threads are pinned to the first two CPUs that this
// process may use, for the scheduler of a busy machine likes to put both on one, where a message takes ten times as
// long. Compare only figures of CPUs that are equally far apart.
#include <benchmark/benchmark.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/wait.hpp"
#include "transports/set.hpp"
#include "transports/shm/local_world.hpp"

namespace rondo::transport {
namespace {

constexpr std::uint32_t more = 1, last = 2;  // signatures: whether another round follows

// Keeps the calling thread on the first or second CPU that this process may use; with a single one, changes nothing.
class Pinned {
 public:
  explicit Pinned(std::size_t which) {
    // Read once, by a thread that is not pinned: threads inherit what their creator may use.
    static const cpu_set_t usable = current();
    if (CPU_COUNT(&usable) < 2) return;
    std::size_t cpu = 0;
    for (std::size_t before = 0;; ++cpu)
      if (CPU_ISSET(cpu, &usable) && before++ == which) break;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  static cpu_set_t current() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }
  cpu_set_t before_ = current();
};

// Two ranks as threads of this process, and a connection each way. Ends of rank r: to_[r], from_[r].
class TwoRanks {
 public:
  TwoRanks() {
    TransportOptions options;
    options.ranks = 2;
    const auto world = std::make_shared<LocalWorld>(2);
    std::vector<std::vector<std::byte>> table;
    for (int r = 0; r < 2; ++r) {
      sets_.push_back(std::make_unique<TransportSet>(base::System::real(), world, r, options));
      table.push_back(sets_.back()->address());
    }
    for (const auto& set : sets_) set->start(table);
    for (int r = 0; r < 2; ++r) to_[r] = sets_[static_cast<std::size_t>(r)]->open_send({1, r, 1 - r, 0});
    for (int r = 0; r < 2; ++r) from_[r] = sets_[static_cast<std::size_t>(r)]->try_open_receive({1, 1 - r, r, 0});
  }
  SendEnd& to(int rank) { return *to_[rank]; }
  ReceiveEnd& from(int rank) { return *from_[rank]; }

  // False after ten minutes, which only a lost message takes.
  template <class Ready>
  bool wait(int rank, Ready&& ready) {
    return base::wait_until(base::System::real(), sets_[static_cast<std::size_t>(rank)]->own_bell(), {}, deadline_,
                            ready, [] {}) == base::WaitResult::ready;
  }
  void set_deadline() { deadline_ = base::System::real().now() + 600'000'000'000; }

 private:
  std::vector<std::unique_ptr<TransportSet>> sets_;
  SendEnd* to_[2] = {};
  ReceiveEnd* from_[2] = {};
  base::Nanoseconds deadline_ = 0;
};

void put(SendEnd& end, const std::byte* payload, std::size_t bytes, std::uint32_t signature) {
  const bool inlined = bytes <= inline_bytes;
  std::memcpy(inlined ? end.line().payload : end.slot(), payload, bytes);
  end.publish(signature, bytes, inlined ? PayloadKind::inlined : PayloadKind::slot);
  end.flush();
}

const std::byte* payload_of(const ReceiveEnd& end, const SlotLine& line) {
  return ReceiveEnd::kind(line) == PayloadKind::inlined ? line.payload : end.slot();
}

void one_thread(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  TwoRanks ranks;
  SendEnd& to = ranks.to(0);
  ReceiveEnd& from = ranks.from(1);
  std::vector<std::byte> payload(bytes);
  for (auto _ : state) {
    if (!to.try_acquire()) return state.SkipWithError("no slot is free");
    put(to, payload.data(), bytes, more);
    const SlotLine* line = from.try_peek();
    if (line == nullptr) return state.SkipWithError("the message is not there");
    std::memcpy(payload.data(), payload_of(from, *line), bytes);
    from.release();
    from.flush();
    benchmark::ClobberMemory();
  }
}
BENCHMARK(one_thread)->Arg(8)->Arg(4096);

// Rank 1: sends back whatever comes, until the last.
void echo(TwoRanks& ranks) {
  const Pinned pinned(1);
  for (std::uint32_t signature = more; signature != last;) {
    const SlotLine* line = nullptr;
    if (!ranks.wait(1, [&] { return (line = ranks.from(1).try_peek()) != nullptr; }) ||
        !ranks.wait(1, [&] { return ranks.to(1).try_acquire(); }))
      return;
    signature = line->signature;
    put(ranks.to(1), payload_of(ranks.from(1), *line), ReceiveEnd::length(*line), signature);
    ranks.from(1).release();
    ranks.from(1).flush();
  }
}

void ping_pong(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  TwoRanks ranks;
  ranks.set_deadline();
  const Pinned pinned(0);
  const auto partner = base::System::real().start_thread("echo", [&] { echo(ranks); });
  std::vector<std::byte> payload(bytes);
  const auto round = [&](std::uint32_t signature) {
    const SlotLine* line = nullptr;
    if (!ranks.wait(0, [&] { return ranks.to(0).try_acquire(); })) return false;
    put(ranks.to(0), payload.data(), bytes, signature);
    if (!ranks.wait(0, [&] { return (line = ranks.from(0).try_peek()) != nullptr; })) return false;
    std::memcpy(payload.data(), payload_of(ranks.from(0), *line), bytes);
    ranks.from(0).release();
    ranks.from(0).flush();
    return true;
  };
  for (auto _ : state) {
    if (!round(more)) {
      state.SkipWithError("no answer within ten minutes");
      break;
    }
  }
  round(last);
  partner->join();
  state.counters["one_way"] =
      benchmark::Counter(2, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(ping_pong)->Arg(8)->Arg(4096)->UseRealTime();

}  // namespace
}  // namespace rondo::transport

BENCHMARK_MAIN();
