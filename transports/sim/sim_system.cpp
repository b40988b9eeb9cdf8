#include "transports/sim/sim_system.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace rondo::transport::sim {
namespace {

class SimThread final : public base::SystemThread {
 public:
  SimThread(Scheduler& scheduler, std::size_t fiber) : scheduler_(scheduler), fiber_(fiber) {}
  void join() override { scheduler_.join(fiber_); }

 private:
  Scheduler& scheduler_;
  std::size_t fiber_;
};

[[noreturn]] void no_descriptors(int fd) {
  throw Error(ErrorCode::internal, fmt::format("descriptor {} was given to a simulated poller, which knows none", fd));
}

}  // namespace

std::unique_ptr<base::SystemThread> SimSystem::start_thread(std::string name, std::function<void()> body) {
  return std::make_unique<SimThread>(scheduler_, scheduler_.spawn(rank_, std::move(name), std::move(body)));
}

void SimPoller::add(int fd, bool, std::function<void()>) { no_descriptors(fd); }
void SimPoller::set_writable(int fd, bool) { no_descriptors(fd); }
void SimPoller::remove(int fd) { no_descriptors(fd); }

void SimPoller::wake() {
  if (woken_.exchange(1, std::memory_order_acq_rel) == 0) system_.futex_wake(woken_);
}

void SimPoller::wait(Nanoseconds limit) {
  if (limit > 0) system_.futex_wait(woken_, 0, limit);
  else system_.yield();
  woken_.store(0, std::memory_order_release);
}

}  // namespace rondo::transport::sim
