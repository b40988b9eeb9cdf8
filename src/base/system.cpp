#include "base/system.hpp"

#include "base/doorbell.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

namespace rondo::base {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "the kernel must see the word of an atomic as a plain 32-bit word");

constexpr Nanoseconds second = 1'000'000'000;

class RealThread final : public SystemThread {
 public:
  RealThread(std::string name, std::function<void()> body) {
    // The kernel keeps 15 characters of a thread's name.
    if (name.size() > 15) name.resize(15);
    // A new thread inherits the mask: the host program's signal handlers never run on our threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread(std::move(body));
    } catch (const std::system_error& error) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw Error(ErrorCode::system, fmt::format("cannot start the thread {}: {}", name, error.what()),
                  "raise the limit on threads: ulimit -u, or the container's pids limit");
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread_.native_handle(), name.c_str());
  }
  void join() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

class RealSystem final : public System {
 public:
  // Registers with the constructor, not with the first barrier: a process that only ever rings must be reached by the
  // barriers of those who sleep.
  RealSystem() : heavy_(register_heavy_barrier()), spin_(several_processors() ? unlimited : 0) {}

  Nanoseconds now() const override {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<Nanoseconds>(time.tv_sec) * second + time.tv_nsec;
  }
  void yield() override { sched_yield(); }
  void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Nanoseconds limit) override {
    if (limit <= 0) return;
    timespec time{};
    time.tv_sec = static_cast<time_t>(limit / second);
    time.tv_nsec = static_cast<long>(limit % second);
    // Not the private form: the word may lie in memory that processes share. All failures (value changed, time out,
    // interrupted) are early returns, which the contract allows.
    syscall(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
  }
  void futex_wake(std::atomic<std::uint32_t>& word) override {
    syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
  }
  std::unique_ptr<SystemThread> start_thread(std::string name, std::function<void()> body) override {
    return std::make_unique<RealThread>(std::move(name), std::move(body));
  }
  bool heavy_barrier() override {
    return heavy_ && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
  }
  std::uint32_t spin_limit() const override { return spin_; }

 private:
  static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

  static bool register_heavy_barrier() {
    if (thread_sanitizer) return false;
    const long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (known < 0 || (known & MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0) return false;
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  }
  static bool several_processors() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) > 1;
  }

  bool heavy_;
  std::uint32_t spin_;
};

}  // namespace

System& System::real() {
  static RealSystem system;
  return system;
}

}  // namespace rondo::base
