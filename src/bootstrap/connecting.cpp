#include "bootstrap/connecting.hpp"

#include "base/wait.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rondo::bootstrap {
namespace {

constexpr base::Nanoseconds millisecond = 1'000'000;
constexpr base::Nanoseconds first_pause = 10 * millisecond;
constexpr base::Nanoseconds longest_pause = 250 * millisecond;
constexpr base::Nanoseconds connect_patience = 5000 * millisecond;
constexpr base::Nanoseconds handshake_patience = 5000 * millisecond;
constexpr base::Nanoseconds stranger_patience = 10'000 * millisecond;
// Bounds the descriptors that outsiders can hold; further ones wait in the listen queue.
constexpr std::size_t most_negotiations = 1024;

short events_of(Handshake::Progress progress) {
  return static_cast<short>(progress == Handshake::Progress::want_write ? POLLIN | POLLOUT : POLLIN);
}

// Who connects again and again to a port of this host on which nobody listens is once in a while given that very port
// as its own, and TCP then connects the socket to itself.
bool connected_to_itself(int socket, const base::SocketAddress& address) {
  return base::local_address(socket).to_string() == address.to_string();
}

}  // namespace

void poll_entries(std::vector<pollfd>& entries, base::Nanoseconds limit) {
  if (::poll(entries.data(), entries.size(), base::to_milliseconds(limit)) < 0 && errno != EINTR) {
    throw base::system_error("poll", errno);
  }
}

Connector::Connector(std::vector<base::SocketAddress> addresses, const Key& key, std::string_view purpose, int own_rank,
                     int peer_rank, std::vector<std::byte> hello)
    : addresses_(std::move(addresses)),
      key_(key),
      purpose_(purpose),
      own_rank_(own_rank),
      peer_rank_(peer_rank),
      hello_(std::move(hello)),
      pause_(first_pause) {}

void Connector::start_round(base::Nanoseconds now) {
  refusal_.reset();
  round_deadline_ = now + connect_patience;
  for (const auto& address : addresses_) {
    try {
      connecting_.push_back({address, base::start_connect(address)});
    } catch (const Error& error) {
      last_error_ = error.message();
    }
  }
}

void Connector::collect_connected(base::Nanoseconds now) {
  if (connecting_.empty()) return;
  std::vector<pollfd> entries;
  for (const auto& attempt : connecting_) entries.push_back({attempt.socket.get(), POLLOUT, 0});
  poll_entries(entries, 0);
  std::vector<Attempt> still;
  for (std::size_t i = 0; i < connecting_.size(); ++i) {
    auto& attempt = connecting_[i];
    if (entries[i].revents != 0) {
      const int error = base::connect_result(attempt.socket.get());
      if (error == 0 && connected_to_itself(attempt.socket.get(), attempt.address)) {
        last_error_ = fmt::format("connect to {}: nobody listens there", attempt.address.to_string());
      } else if (error == 0) {
        connected_.push_back(std::move(attempt));
      } else {
        last_error_ = fmt::format("connect to {}: {}", attempt.address.to_string(), std::strerror(error));
      }
    } else if (now >= round_deadline_) {
      last_error_ = fmt::format("connect to {}: no answer", attempt.address.to_string());
    } else {
      still.push_back(std::move(attempt));
    }
  }
  connecting_ = std::move(still);
}

// Whether the handshake on hand, if any, is done.
bool Connector::negotiate(base::Nanoseconds now) {
  while (negotiation_ || !connected_.empty()) {
    if (!negotiation_) {
      Attempt attempt = std::move(connected_.front());
      connected_.pop_front();
      auto handshake = Handshake::initiate(attempt.socket.get(), key_, purpose_, own_rank_, peer_rank_, hello_);
      negotiation_.emplace(Negotiation{std::move(attempt), std::move(handshake), now + handshake_patience});
    }
    const std::string where = negotiation_->attempt.address.to_string();
    try {
      negotiation_->progress = negotiation_->handshake.step();
      if (negotiation_->progress == Handshake::Progress::done) return true;
      if (now < negotiation_->deadline) return false;
      last_error_ = fmt::format("{} accepted the connection and then said nothing", where);
    } catch (const Error& error) {
      last_error_ = fmt::format("{}: {}", where, error.message());
      if (error.code() == ErrorCode::authentication) {
        refusal_.emplace(error.code(), fmt::format("{} (at {})", error.message(), where), error.hint(), error.peer());
      }
    }
    negotiation_.reset();
  }
  return false;
}

std::optional<base::FileDescriptor> Connector::step(base::Nanoseconds now) {
  if (!negotiation_ && connected_.empty() && connecting_.empty() && now >= next_round_) start_round(now);
  collect_connected(now);
  if (negotiate(now)) {
    auto socket = std::move(negotiation_->attempt.socket);
    negotiation_.reset();
    connecting_.clear();
    connected_.clear();
    return socket;
  }
  if (negotiation_) {
    next_time_ = negotiation_->deadline;
  } else if (!connecting_.empty()) {
    next_time_ = round_deadline_;
  } else if (now >= next_round_) {
    if (refusal_) throw Error(*refusal_);
    next_round_ = now + pause_;
    pause_ = std::min(2 * pause_, longest_pause);
    next_time_ = next_round_;
  }
  return std::nullopt;
}

void Connector::add_to(std::vector<pollfd>& entries) const {
  for (const auto& attempt : connecting_) entries.push_back({attempt.socket.get(), POLLOUT, 0});
  if (negotiation_) entries.push_back({negotiation_->attempt.socket.get(), events_of(negotiation_->progress), 0});
}

Acceptor::Acceptor(const base::Listener& listener, const Key& key, int own_rank)
    : listener_(listener), key_(key), own_rank_(own_rank) {}

std::vector<Accepted> Acceptor::step(base::Nanoseconds now) {
  for (const auto& socket : listener_.sockets()) {
    while (negotiations_.size() < most_negotiations) {
      auto connection = base::accept_connection(socket.get());
      if (!connection) break;
      auto handshake = Handshake::accept(connection.get(), key_, own_rank_);
      negotiations_.push_back({std::move(connection), std::move(handshake), now + stranger_patience});
    }
  }
  std::vector<Accepted> done;
  for (auto it = negotiations_.begin(); it != negotiations_.end();) {
    bool over = now >= it->deadline;
    try {
      it->progress = it->handshake.step();
      if (it->progress == Handshake::Progress::done) {
        done.push_back(
            {std::move(it->socket), it->handshake.purpose(), it->handshake.peer_rank(), it->handshake.hello()});
        over = true;
      }
    } catch (const Error&) {
      over = true;
    }
    it = over ? negotiations_.erase(it) : std::next(it);
  }
  return done;
}

void Acceptor::add_to(std::vector<pollfd>& entries) const {
  if (negotiations_.size() < most_negotiations) {
    for (const auto& socket : listener_.sockets()) entries.push_back({socket.get(), POLLIN, 0});
  }
  for (const auto& negotiation : negotiations_) {
    entries.push_back({negotiation.socket.get(), events_of(negotiation.progress), 0});
  }
}

base::Nanoseconds Acceptor::next_time() const {
  return negotiations_.empty() ? base::never : negotiations_.front().deadline;
}

}  // namespace rondo::bootstrap
