// WireEvents: tells connections, once each time they ask, that their socket has news.
//
// An epoll set of its own, one-shot, that is itself a descriptor of the service thread's poller. A connection that
// isn't armed costs nothing, so owners that poll their sockets themselves don't wake the service thread.
//
// Threads: dispatch runs on the service thread; the rest anywhere. Handlers are called without locks held and may be
// called once more while remove() runs: they are held by shared_ptr.
#pragma once

#include "base/poller.hpp"
#include "base/socket.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace rondo::transport::tcp {

class WireEvents {
 public:
  class Handler {
   public:
    Handler() = default;
    Handler(const Handler&) = delete;
    Handler& operator=(const Handler&) = delete;
    virtual ~Handler() = default;
    virtual void on_wire() noexcept = 0;
  };

  explicit WireEvents(base::Poller& poller);
  WireEvents(const WireEvents&) = delete;
  WireEvents& operator=(const WireEvents&) = delete;
  ~WireEvents();

  // Returns the registration's token.
  std::uint64_t add(int fd, std::weak_ptr<Handler> handler);
  // One call of on_wire() once the socket is readable / writable (at once if it is already) or broken.
  void arm(int fd, std::uint64_t token, bool readable, bool writable);
  // Before the descriptor is closed.
  void remove(int fd, std::uint64_t token) noexcept;

 private:
  void dispatch();

  base::Poller& poller_;
  base::FileDescriptor epoll_;
  std::mutex mutex_;
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, std::weak_ptr<Handler>> handlers_;
};

}  // namespace rondo::transport::tcp
