// Prints how long a cache line takes from one core to another at this moment, one way, in nanoseconds.
//
// Two pinned threads pass a counter to and fro; the best of several batches counts. On virtual machines the figure
// changes within seconds as cores are moved, and moves every result with it: so it is printed beside each comparison.
// Arguments: two CPU numbers; by default the first two that this process may use. Prints "nan" where there is only one.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned batches = 15;
constexpr unsigned rounds = 400;

struct alignas(128) Line {
  std::atomic<unsigned> value{0};
};

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins for the value, since the time of a sleep is not what is measured. Gives up after 5 s of it.
bool await(const std::atomic<unsigned>& line, unsigned value) {
  const Clock::time_point start = Clock::now();
  for (unsigned tries = 1; line.load(std::memory_order_acquire) < value; ++tries) {
    pause();
    if (tries % 4096 == 0 && Clock::now() - start > std::chrono::seconds(5)) return false;
  }
  return true;
}

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> cpus = usable_cpus();
  if (argc == 3) cpus = {std::atoi(argv[1]), std::atoi(argv[2])};
  if (cpus.size() < 2) {
    std::puts("nan");
    return 0;
  }
  Line there;
  Line back;
  std::thread other([&] {
    pin(cpus[1]);
    for (unsigned i = 1; i <= rounds * batches; ++i) {
      if (!await(there.value, i)) return;
      back.value.store(i, std::memory_order_release);  // matches the first thread's acquire in await
    }
  });
  pin(cpus[0]);
  double best = std::numeric_limits<double>::infinity();
  unsigned i = 1;
  bool alive = true;
  for (unsigned batch = 0; batch < batches && alive; ++batch) {
    const Clock::time_point start = Clock::now();
    for (unsigned round = 0; round < rounds && alive; ++round, ++i) {
      there.value.store(i, std::memory_order_release);  // matches the other thread's acquire in await
      alive = await(back.value, i);
    }
    const double nanoseconds = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    if (alive) best = std::min(best, nanoseconds / rounds / 2);
  }
  other.join();
  std::printf("%.0f\n", best);
  return 0;
}
