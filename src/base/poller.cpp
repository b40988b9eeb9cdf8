#include "base/poller.hpp"

#include "base/socket.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace rondo::base {
namespace {

class RealPoller final : public Poller {
 public:
  RealPoller() : epoll_(epoll_create1(EPOLL_CLOEXEC)), event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!epoll_) throw system_error("epoll_create1", errno);
    if (!event_) throw system_error("eventfd", errno);
    control(EPOLL_CTL_ADD, event_.get(), false, wake_token);
  }

  void add(int fd, bool writable, std::function<void()> ready) override {
    const std::lock_guard lock(mutex_);
    const std::uint64_t token = next_token_++;
    control(EPOLL_CTL_ADD, fd, writable, token);
    entries_[token] = {fd, std::make_shared<std::function<void()>>(std::move(ready))};
    tokens_[fd] = token;
  }
  void set_writable(int fd, bool writable) override {
    const std::lock_guard lock(mutex_);
    const auto found = tokens_.find(fd);
    if (found != tokens_.end()) control(EPOLL_CTL_MOD, fd, writable, found->second);
  }
  void remove(int fd) override {
    const std::lock_guard lock(mutex_);
    const auto found = tokens_.find(fd);
    if (found == tokens_.end()) return;
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);  // fails harmlessly when the descriptor is closed already
    entries_.erase(found->second);
    tokens_.erase(found);
  }
  void wake() override {
    const std::uint64_t one = 1;
    // Fails only when the counter is full, and then a wake-up is pending anyway.
    [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
  }
  void wait(Nanoseconds limit) override {
    std::array<epoll_event, 64> events{};
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), to_milliseconds(limit));
    if (count < 0) {
      if (errno == EINTR) return;
      throw system_error("epoll_wait", errno);
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const std::uint64_t token = events[i].data.u64;
      if (token == wake_token) {
        std::uint64_t value = 0;
        [[maybe_unused]] const auto taken = ::read(event_.get(), &value, sizeof value);
        continue;
      }
      std::shared_ptr<std::function<void()>> ready;
      {
        const std::lock_guard lock(mutex_);
        // Looked up for each event: an earlier callback of this round may have removed it, and a token, unlike a
        // descriptor's number, is never used again.
        const auto found = entries_.find(token);
        if (found != entries_.end()) ready = found->second.ready;
      }
      if (ready) (*ready)();
    }
  }

 private:
  static constexpr std::uint64_t wake_token = 0;
  struct Entry {
    int fd = -1;
    std::shared_ptr<std::function<void()>> ready;  // shared: it may remove itself while it runs
  };

  void control(int operation, int fd, bool writable, std::uint64_t token) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | (writable ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
    event.data.u64 = token;
    if (epoll_ctl(epoll_.get(), operation, fd, &event) != 0) throw system_error("epoll_ctl", errno);
  }

  FileDescriptor epoll_;
  FileDescriptor event_;
  std::mutex mutex_;
  std::uint64_t next_token_ = 1;
  std::map<std::uint64_t, Entry> entries_;
  std::map<int, std::uint64_t> tokens_;
};

}  // namespace

std::unique_ptr<Poller> Poller::make_real() { return std::make_unique<RealPoller>(); }

}  // namespace rondo::base
