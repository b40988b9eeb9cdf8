// Prints how long two processes take that copy so many bytes each at once, in microseconds: median of 41 copies,
// memcpy, buffers rotating through at least 128 MiB. No all_reduce of two ranks that writes its output can be faster.
// Arguments: bytes (16777216).
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned copies = 41;
constexpr std::size_t working_set = std::size_t{128} << 20;

// Both start each copy together. Gives up after 5 s.
bool meet(std::atomic<unsigned>& arrived, unsigned copy) {
  const Clock::time_point start = Clock::now();
  arrived.fetch_add(1, std::memory_order_acq_rel);
  while (arrived.load(std::memory_order_acquire) < 2 * (copy + 1))
    if (Clock::now() - start > std::chrono::seconds(5)) return false;
  return true;
}

// Microseconds, or a negative number if the other process did not come.
double median_copy(std::size_t bytes, std::atomic<unsigned>& arrived) {
  const std::size_t buffers = std::max<std::size_t>(2, working_set / bytes);
  std::vector<char> from(bytes * buffers, 1);
  std::vector<char> to(bytes * buffers, 2);
  std::vector<double> times;
  for (unsigned i = 0; i < copies; ++i) {
    if (!meet(arrived, i)) return -1;
    const std::size_t offset = bytes * (i % buffers);
    const Clock::time_point start = Clock::now();
    std::memcpy(to.data() + offset, from.data() + offset, bytes);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + copies / 2, times.end());
  return times[copies / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : std::size_t{16} << 20;
  if (bytes == 0 || bytes > (std::size_t{1} << 30)) {
    std::fprintf(stderr, "usage: two_copies [BYTES], from 1 to 1073741824\n");
    return 2;
  }
  void* shared =
      mmap(nullptr, sizeof(std::atomic<unsigned>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& arrived = *new (shared) std::atomic<unsigned>(0);
  const pid_t child = fork();
  if (child < 0) return 1;
  const double median = median_copy(bytes, arrived);
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  if (median < 0) return 1;
  std::printf("%.0f\n", median);
  return 0;
}
