#include "bootstrap/join.hpp"

#include "base/wait.hpp"
#include "bootstrap/connecting.hpp"
#include "bootstrap/control_frame.hpp"
#include "bootstrap/join_messages.hpp"
#include "bootstrap/rendezvous.hpp"
#include "bootstrap/stream_link.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace rondo::bootstrap {
namespace {

constexpr base::Nanoseconds second = 1'000'000'000;
// The rendezvous answers at the deadline; its answer needs a moment to come.
constexpr base::Nanoseconds answer_grace = 2 * second;
// In the agreement each level of the tree waits this much longer than the one below.
constexpr base::Nanoseconds level_grace = second;

std::vector<base::SocketAddress> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<base::SocketAddress> out;
  for (const auto& text : texts) out.push_back(base::SocketAddress::parse(text));
  return out;
}

// Waits for the next frame; empty when the link ends or the deadline passes.
std::optional<std::vector<std::byte>> wait_for_frame(StreamLink& link, base::Nanoseconds deadline) {
  auto& clock = base::System::real();
  for (;;) {
    if (auto frame = link.receive()) return frame;
    const base::Nanoseconds left = deadline - clock.now();
    if (link.closed() || left <= 0) return std::nullopt;
    const bool pending = !link.flush();
    std::vector<pollfd> entries{{link.fd(), static_cast<short>(pending ? POLLIN | POLLOUT : POLLIN), 0}};
    poll_entries(entries, left);
  }
}

class Joining {
 public:
  Joining(const UniqueId& id, const JoinOptions& options)
      : options_(options), key_(key_of(id)), rendezvous_(addresses_of(id)), start_(clock_.now()), mark_(start_) {
    deadline_ = options.deadline >= base::never - start_ ? base::never / 2 : start_ + options.deadline;
  }

  Joined run(base::Poller& poller) {
    listener_ = base::Listener(base::usable_addresses(options_.interfaces), port_range_from_environment());
    finish_phase("listen");
    joined_.key = key_;
    joined_.peers = meet();
    finish_phase("rendezvous");
    std::optional<Error> error;
    try {
      connect_neighbours();
    } catch (const Error& failure) {
      error = failure;
    }
    finish_phase("tree");
    agree(std::move(error));
    finish_phase("agreement");
    for (auto& [rank, link] : links_) {
      link->attach(poller);
      joined_.links.emplace(rank, std::move(link));
    }
    return std::move(joined_);
  }

 private:
  std::vector<PeerInfo> meet() {
    Connector connector(rendezvous_, key_, purpose_rendezvous, options_.rank, rendezvous_rank);
    std::vector<pollfd> entries;
    std::optional<base::FileDescriptor> socket;
    for (;;) {
      const base::Nanoseconds now = clock_.now();
      socket = connector.step(now);
      if (socket) break;
      if (now >= deadline_) {
        std::vector<std::string> addresses;
        for (const auto& address : rendezvous_) addresses.push_back(address.to_string());
        throw Error(ErrorCode::deadline,
                    fmt::format("rank {} could not reach the rendezvous at {} within {:.1f} s: {}", options_.rank,
                                fmt::join(addresses, " or "), seconds(options_.deadline), connector.last_error()),
                    "check that the process that made the unique id still runs and that no firewall is between; "
                    "RONDO_INTERFACES and RONDO_PORT_RANGE choose its addresses and port");
      }
      entries.clear();
      connector.add_to(entries);
      poll_entries(entries, std::min(deadline_, connector.next_time()) - now);
    }
    StreamLink link(std::move(*socket));
    JoinRequest request{options_.rank, options_.size, deadline_ - clock_.now(), options_.self};
    request.self.addresses.clear();
    for (const auto& address : listener_.addresses()) request.self.addresses.push_back(address.to_string());
    link.send(encode(request));
    const auto frame = wait_for_frame(link, deadline_ + answer_grace);
    if (!frame) {
      if (link.closed()) {
        throw Error(ErrorCode::rank_failed,
                    fmt::format("the rendezvous went away before all {} ranks had joined", options_.size),
                    "the process that made the unique id must live until then; look at its output");
      }
      throw Error(ErrorCode::deadline,
                  fmt::format("rank {} had no answer of the rendezvous within {:.1f} s", options_.rank,
                              seconds(options_.deadline)),
                  "the process that made the unique id is stopped or cut off");
    }
    auto answer = decode_join_answer(*frame);
    if (answer.error) throw Error(*answer.error);
    if (answer.peers.size() != static_cast<std::size_t>(options_.size)) {
      throw Error(ErrorCode::internal, fmt::format("the rendezvous sent a table of {} ranks instead of {}",
                                                   answer.peers.size(), options_.size));
    }
    return std::move(answer.peers);
  }

  void connect_neighbours() {
    const auto children = tree_children(options_.rank, options_.size);
    std::set<int> waited(children.begin(), children.end());
    std::optional<Connector> to_parent;
    if (options_.rank > 0) {
      const int parent = tree_parent(options_.rank);
      to_parent.emplace(parse_addresses(joined_.peers[static_cast<std::size_t>(parent)].addresses), key_,
                        purpose_control, options_.rank, parent);
    }
    Acceptor acceptor(listener_, key_, options_.rank);
    std::vector<pollfd> entries;
    while (to_parent || !waited.empty()) {
      const base::Nanoseconds now = clock_.now();
      if (to_parent) {
        if (auto socket = to_parent->step(now)) {
          links_[tree_parent(options_.rank)] = std::make_unique<StreamLink>(std::move(*socket));
          to_parent.reset();
        }
      }
      for (auto& accepted : acceptor.step(now)) {
        const bool child = std::find(children.begin(), children.end(), accepted.peer_rank) != children.end();
        if (accepted.purpose != purpose_control || !child) continue;
        // A second connection of a child replaces the first: the child gave that one up.
        links_[accepted.peer_rank] = std::make_unique<StreamLink>(std::move(accepted.socket));
        waited.erase(accepted.peer_rank);
      }
      if (!to_parent && waited.empty()) return;
      if (now >= deadline_) throw not_connected(to_parent, waited);
      entries.clear();
      acceptor.add_to(entries);
      base::Nanoseconds next = std::min(deadline_, acceptor.next_time());
      if (to_parent) {
        to_parent->add_to(entries);
        next = std::min(next, to_parent->next_time());
      }
      poll_entries(entries, next - now);
    }
  }

  Error not_connected(const std::optional<Connector>& to_parent, const std::set<int>& waited) const {
    const std::string hint = "check firewalls between the hosts; RONDO_INTERFACES chooses networks all ranks can reach";
    if (to_parent) {
      const int parent = tree_parent(options_.rank);
      const auto& info = peer(parent);
      return Error(ErrorCode::deadline,
                   fmt::format("{} could not connect to {} at {}: {}", describe(options_.rank, peer(options_.rank)),
                               describe(parent, info), fmt::join(info.addresses, " or "), to_parent->last_error()),
                   hint, parent);
    }
    std::vector<std::string> names;
    for (const int rank : waited) names.push_back(describe(rank, peer(rank)));
    return Error(ErrorCode::deadline,
                 fmt::format("{} waited in vain for the connection of {}", describe(options_.rank, peer(options_.rank)),
                             fmt::join(names, ", ")),
                 hint, *waited.begin());
  }

  // Gathers everybody's outcome at rank 0 and spreads its verdict; throws the error that the verdict carries.
  void agree(std::optional<Error> error) {
    const int height = tree_depth(options_.size - 1);
    const int depth = tree_depth(options_.rank);
    const base::Nanoseconds reports_by = deadline_ + (height - depth + 1) * level_grace;
    const base::Nanoseconds verdict_by = deadline_ + (height + depth + 2) * level_grace;
    const auto children = tree_children(options_.rank, options_.size);
    for (const int child : children) {
      const auto found = links_.find(child);
      if (found == links_.end()) continue;  // `error` tells already
      auto theirs = outcome_from(*found->second, child, reports_by);
      if (theirs && !error) error = std::move(theirs);
    }
    if (options_.rank > 0) {
      const int parent = tree_parent(options_.rank);
      if (const auto found = links_.find(parent); found != links_.end()) {
        found->second->send(encode_outcome(error));
        auto verdict = outcome_from(*found->second, parent, verdict_by);
        if (verdict || !error) error = std::move(verdict);
      }
    }
    for (const int child : children) {
      if (const auto found = links_.find(child); found != links_.end()) found->second->send(encode_outcome(error));
    }
    if (error) throw Error(*error);
  }

  std::optional<Error> outcome_from(StreamLink& link, int rank, base::Nanoseconds deadline) const {
    const auto frame = wait_for_frame(link, deadline);
    if (frame) {
      try {
        return decode_outcome(*frame);
      } catch (const Error& error) {
        return Error(error.code(), fmt::format("{}: {}", describe(rank, peer(rank)), error.message()), "", rank);
      }
    }
    if (link.closed()) {
      return Error(ErrorCode::rank_failed,
                   fmt::format("{} went away while the ranks were joining", describe(rank, peer(rank))),
                   "look at its output", rank);
    }
    return Error(ErrorCode::deadline,
                 fmt::format("{} did not finish joining within {:.1f} s", describe(rank, peer(rank)),
                             seconds(options_.deadline)),
                 "it, or a rank below it in the tree, is stopped or cut off", rank);
  }

  const PeerInfo& peer(int rank) const { return joined_.peers[static_cast<std::size_t>(rank)]; }
  static double seconds(base::Nanoseconds time) { return static_cast<double>(time) / 1e9; }
  void finish_phase(const char* name) {
    const base::Nanoseconds now = clock_.now();
    joined_.phases.emplace_back(name, static_cast<double>(now - mark_) / 1e6);
    mark_ = now;
  }

  base::System& clock_ = base::System::real();
  const JoinOptions& options_;
  Key key_;
  std::vector<base::SocketAddress> rendezvous_;
  base::Nanoseconds start_;
  base::Nanoseconds mark_;
  base::Nanoseconds deadline_ = 0;
  base::Listener listener_;
  std::map<int, std::unique_ptr<StreamLink>> links_;
  Joined joined_;
};

}  // namespace

Joined join(const UniqueId& id, const JoinOptions& options, base::Poller& poller) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rank {} of a world of {}: ranks go from 0 to size - 1", options.rank, options.size));
  }
  if (options.size == 1) {
    Joined alone;
    alone.key = key_of(id);
    alone.peers.push_back(options.self);
    return alone;
  }
  return Joining(id, options).run(poller);
}

}  // namespace rondo::bootstrap
