// Acceptor: the listening side of the tcp transport, up to a socket that has proved whom it belongs to.
//
// Listens on the given addresses at a port that the kernel chooses; drives the handshakes of whoever connects; answers
// probes with their own bytes; hands data connections over. At most `most_pending` strangers at a time, each for at
// most `pending_deadline`; more wait in the kernel's queue.
//
// Threads: construction and destruction anywhere (the service thread must have ended before the latter); the rest on
// the service thread, where `accepted` is called too.
#pragma once

#include "base/poller.hpp"
#include "base/socket.hpp"
#include "bootstrap/handshake.hpp"
#include "transports/tcp/wire.hpp"

#include <array>
#include <functional>
#include <list>
#include <optional>

namespace rondo::transport::tcp {

class Acceptor {
 public:
  static constexpr std::size_t most_pending = 128;
  static constexpr base::Nanoseconds pending_deadline = 5'000'000'000;
  using Accepted = std::function<void(const Hello& hello, base::FileDescriptor fd)>;

  Acceptor(base::System& system, base::Poller& poller, const bootstrap::Key& key, int rank,
           std::span<const base::SocketAddress> addresses, Accepted accepted);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor();

  const std::vector<base::SocketAddress>& addresses() const { return listener_.addresses(); }
  // Drops those past their deadline.
  void service();

 private:
  struct Pending {
    base::FileDescriptor fd;
    bootstrap::Handshake handshake;
    base::Nanoseconds deadline;
    bool echoing = false;  // a probe behind its handshake
    std::array<std::byte, probe_bytes> pattern{};
    std::size_t received = 0;
    std::size_t echoed = 0;
  };
  using PendingIterator = std::list<Pending>::iterator;
  void listen(bool on);
  void accept_from(int listener);
  void step(PendingIterator pending);
  bool advance(PendingIterator pending);
  bool echo(PendingIterator pending);
  void drop(PendingIterator pending);

  base::System& system_;
  base::Poller& poller_;
  bootstrap::Key key_;
  int rank_;
  Accepted accepted_;
  base::Listener listener_;
  bool listening_ = false;
  std::list<Pending> pending_;
};

}  // namespace rondo::transport::tcp
