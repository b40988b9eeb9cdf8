#include "transports/tcp/wire_events.hpp"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <utility>

namespace rondo::transport::tcp {

WireEvents::WireEvents(base::Poller& poller) : poller_(poller), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw base::system_error("epoll_create1", errno);
  poller_.add(epoll_.get(), false, [this] { dispatch(); });
}

WireEvents::~WireEvents() { poller_.remove(epoll_.get()); }

std::uint64_t WireEvents::add(int fd, std::weak_ptr<Handler> handler) {
  std::uint64_t token = 0;
  {
    const std::lock_guard lock(mutex_);
    token = ++last_token_;
    handlers_.emplace(token, std::move(handler));
  }
  epoll_event event{};
  event.events = EPOLLONESHOT;  // no interest yet; a hang-up may show once, which is harmless
  event.data.u64 = token;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw base::system_error("epoll_ctl(ADD)", errno);
  return token;
}

void WireEvents::arm(int fd, std::uint64_t token, bool readable, bool writable) {
  epoll_event event{};
  event.events = EPOLLONESHOT;
  if (readable) event.events |= EPOLLIN | EPOLLRDHUP;
  if (writable) event.events |= EPOLLOUT;
  event.data.u64 = token;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) throw base::system_error("epoll_ctl(MOD)", errno);
}

void WireEvents::remove(int fd, std::uint64_t token) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  const std::lock_guard lock(mutex_);
  handlers_.erase(token);
}

void WireEvents::dispatch() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    std::shared_ptr<Handler> handler;
    {
      const std::lock_guard lock(mutex_);
      const auto found = handlers_.find(events[static_cast<std::size_t>(i)].data.u64);
      if (found != handlers_.end()) handler = found->second.lock();
    }
    if (handler != nullptr) handler->on_wire();
  }
}

}  // namespace rondo::transport::tcp
