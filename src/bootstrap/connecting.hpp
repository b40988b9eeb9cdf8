// Connector and Acceptor: connections up to the end of their handshakes, for owners that poll.
//
// One thread at a time. The owner repeats: add_to(entries) of each, poll(entries), step(now) of each. Neither blocks.
#pragma once

#include "base/socket.hpp"
#include "base/system.hpp"
#include "bootstrap/handshake.hpp"

#include <poll.h>

#include <deque>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace rondo::bootstrap {

// Waits for an event of the entries for at most `limit`.
void poll_entries(std::vector<pollfd>& entries, base::Nanoseconds limit);

// Tries all addresses of one peer at once, and again until it is stopped. The handshake is done on one connection at a
// time, the first reachable first, so that a peer never takes one rank for two.
class Connector {
 public:
  Connector(std::vector<base::SocketAddress> addresses, const Key& key, std::string_view purpose, int own_rank,
            int peer_rank, std::vector<std::byte> hello = {});

  // The authenticated socket, once. Throws Error(authentication) when all that could be reached refused the key.
  std::optional<base::FileDescriptor> step(base::Nanoseconds now);
  void add_to(std::vector<pollfd>& entries) const;
  // When step() wants to be called even if nothing happens.
  base::Nanoseconds next_time() const { return next_time_; }
  // Why the last attempt failed, for the owner's deadline error.
  const std::string& last_error() const { return last_error_; }

 private:
  struct Attempt {
    base::SocketAddress address;
    base::FileDescriptor socket;
  };
  struct Negotiation {
    Attempt attempt;
    Handshake handshake;
    base::Nanoseconds deadline;
    Handshake::Progress progress = Handshake::Progress::want_read;
  };
  void start_round(base::Nanoseconds now);
  void collect_connected(base::Nanoseconds now);
  bool negotiate(base::Nanoseconds now);

  std::vector<base::SocketAddress> addresses_;
  Key key_;
  std::string purpose_;
  int own_rank_;
  int peer_rank_;
  std::vector<std::byte> hello_;
  std::vector<Attempt> connecting_;
  std::deque<Attempt> connected_;
  std::optional<Negotiation> negotiation_;
  std::optional<Error> refusal_;
  base::Nanoseconds pause_;
  base::Nanoseconds next_round_ = 0;
  base::Nanoseconds round_deadline_ = 0;
  base::Nanoseconds next_time_ = 0;
  std::string last_error_ = "no connection was tried yet";
};

struct Accepted {
  base::FileDescriptor socket;
  std::string purpose;
  int peer_rank = 0;
  std::vector<std::byte> hello;
};

// Accepts on a listener and gives strangers ten seconds to prove that they belong here.
class Acceptor {
 public:
  // The listener must outlive the acceptor.
  Acceptor(const base::Listener& listener, const Key& key, int own_rank);

  // Connections whose handshakes are done. Failed ones are dropped in silence: they are outsiders' business.
  std::vector<Accepted> step(base::Nanoseconds now);
  void add_to(std::vector<pollfd>& entries) const;
  // While handshakes are under way, the first of their deadlines.
  base::Nanoseconds next_time() const;

 private:
  struct Negotiation {
    base::FileDescriptor socket;
    Handshake handshake;
    base::Nanoseconds deadline;
    Handshake::Progress progress = Handshake::Progress::want_read;
  };
  const base::Listener& listener_;
  Key key_;
  int own_rank_;
  std::list<Negotiation> negotiations_;
};

}  // namespace rondo::bootstrap
