#include "transports/tcp/acceptor.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <iterator>
#include <utility>

namespace rondo::transport::tcp {

Acceptor::Acceptor(base::System& system, base::Poller& poller, const bootstrap::Key& key, int rank,
                   std::span<const base::SocketAddress> addresses, Accepted accepted)
    : system_(system),
      poller_(poller),
      key_(key),
      rank_(rank),
      accepted_(std::move(accepted)),
      listener_(addresses, base::PortRange{}) {
  listen(true);
}

Acceptor::~Acceptor() {
  listen(false);
  for (const Pending& pending : pending_) poller_.remove(pending.fd.get());
}

// Off while there are too many strangers: a listener that isn't emptied would keep the service thread awake.
void Acceptor::listen(bool on) {
  if (listening_ == on) return;
  listening_ = on;
  for (const base::FileDescriptor& socket : listener_.sockets()) {
    const int fd = socket.get();
    if (on) poller_.add(fd, false, [this, fd] { accept_from(fd); });
    else poller_.remove(fd);
  }
}

void Acceptor::accept_from(int listener) {
  while (pending_.size() < most_pending) {
    base::FileDescriptor fd;
    try {
      fd = base::accept_connection(listener);
    } catch (const Error&) {
      return;  // no descriptor free: the stranger waits, and its deadline decides
    }
    if (!fd) return;
    const int number = fd.get();
    pending_.push_back(
        Pending{std::move(fd), bootstrap::Handshake::accept(number, key_, rank_), system_.now() + pending_deadline});
    const auto pending = std::prev(pending_.end());
    poller_.add(number, false, [this, pending] { step(pending); });
    step(pending);
  }
  listen(false);
}

void Acceptor::step(PendingIterator pending) {
  bool keep = false;
  try {
    keep = advance(pending);
  } catch (const Error&) {
    // A stranger, or a peer that broke off: it learns from the closed connection.
  }
  if (!keep) drop(pending);
}

// False when the acceptor is done with the connection.
bool Acceptor::advance(PendingIterator pending) {
  if (pending->echoing) return echo(pending);
  const auto progress = pending->handshake.step();
  if (progress != bootstrap::Handshake::Progress::done) {
    poller_.set_writable(pending->fd.get(), progress == bootstrap::Handshake::Progress::want_write);
    return true;
  }
  if (pending->handshake.purpose() != bootstrap::purpose_tcp) return false;
  const Hello hello = decode_hello(pending->handshake.hello());
  if (hello.kind == HelloKind::probe) {
    poller_.set_writable(pending->fd.get(), false);
    pending->echoing = true;
    return echo(pending);
  }
  if (hello.key.destination != rank_ || hello.key.source != pending->handshake.peer_rank()) return false;
  poller_.remove(pending->fd.get());
  accepted_(hello, std::move(pending->fd));
  return false;
}

bool Acceptor::echo(PendingIterator pending) {
  const int fd = pending->fd.get();
  while (pending->received < probe_bytes) {
    const ssize_t got = ::recv(fd, &pending->pattern[pending->received], probe_bytes - pending->received, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    pending->received += static_cast<std::size_t>(got);
  }
  while (pending->echoed < probe_bytes) {
    const ssize_t sent =
        ::send(fd, &pending->pattern[pending->echoed], probe_bytes - pending->echoed, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
      poller_.set_writable(fd, true);
      return true;
    }
    if (sent <= 0) return false;
    pending->echoed += static_cast<std::size_t>(sent);
  }
  return false;
}

void Acceptor::drop(PendingIterator pending) {
  if (pending->fd) poller_.remove(pending->fd.get());
  pending_.erase(pending);
  if (pending_.size() < most_pending) listen(true);
}

void Acceptor::service() {
  const base::Nanoseconds now = system_.now();
  while (!pending_.empty() && pending_.front().deadline <= now) drop(pending_.begin());  // oldest first
}

}  // namespace rondo::transport::tcp
