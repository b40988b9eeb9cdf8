#include "bootstrap/rendezvous.hpp"

#include "base/wait.hpp"
#include "bootstrap/connecting.hpp"
#include "bootstrap/join_messages.hpp"
#include "bootstrap/stream_link.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <optional>
#include <utility>

namespace rondo::bootstrap {
namespace {

constexpr base::Nanoseconds second = 1'000'000'000;
constexpr base::Nanoseconds life = 600 * second;
constexpr base::Nanoseconds request_patience = 10 * second;
constexpr base::Nanoseconds farewell_patience = 10 * second;
// Requests carry names, settings and transports' addresses; a rank's share of a table that must fit one frame.
constexpr std::size_t most_ranks = 1 << 20;

}  // namespace

class Rendezvous::Service {
 public:
  Service(base::Listener listener, const Key& key, UniqueId id)
      : listener_(std::move(listener)),
        acceptor_(listener_, key, rendezvous_rank),
        id_(id),
        stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        creator_(getpid()) {
    if (!stop_) throw base::system_error("eventfd", errno);
    thread_ = base::System::real().start_thread("rondo-meet", [this] { run(); });
  }
  ~Service() {
    if (getpid() != creator_) {
      static_cast<void>(thread_.release());  // a forked child has no such thread to wait for
      return;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
    thread_->join();
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const UniqueId& id() const { return id_; }
  bool finished() const { return finished_.load(std::memory_order_acquire); }  // pairs with the store in run()

 private:
  struct Guest {
    std::unique_ptr<StreamLink> link;
    int rank = 0;
    base::Nanoseconds arrived = 0;
    bool answered = false;
    std::optional<JoinRequest> request;
  };

  void run() {
    auto& clock = base::System::real();
    const base::Nanoseconds start = clock.now();
    base::Nanoseconds end = start + life;
    std::vector<pollfd> entries;
    try {
      for (;;) {
        const base::Nanoseconds now = clock.now();
        for (auto& accepted : acceptor_.step(now)) welcome(std::move(accepted), now);
        listen_to_guests(now);
        if (!answer_ && missing_deadline_ <= now) conclude_missing();
        answer_guests();
        if (answer_ && !answer_->error && farewell(now)) break;
        if (!answer_ && !by_rank_.empty()) end = std::max(end, missing_deadline_);
        if (now >= end) break;

        entries.assign(1, {stop_.get(), POLLIN, 0});
        acceptor_.add_to(entries);
        bool writing = false;
        for (const auto& guest : guests_) {
          const bool pending = guest.answered && !guest.link->flush();
          writing = writing || pending;
          entries.push_back({guest.link->fd(), static_cast<short>(pending ? POLLIN | POLLOUT : POLLIN), 0});
        }
        base::Nanoseconds next = std::min(end, acceptor_.next_time());
        next = std::min(next, answer_ ? farewell_deadline_ : missing_deadline_);
        for (const auto& guest : guests_) {
          if (!guest.request) next = std::min(next, guest.arrived + request_patience);
        }
        poll_entries(entries, next - now);
        if (entries.front().revents != 0) break;
      }
    } catch (const std::exception& error) {
      // Out of descriptors or memory: whoever waits learns it, nobody hangs.
      answer_ = JoinAnswer{Error(ErrorCode::system, fmt::format("the rendezvous broke down: {}", error.what())), {}};
      for (auto& guest : guests_) {
        if (!guest.answered) guest.link->send(encode(*answer_));
      }
    }
    guests_.clear();
    finished_.store(true, std::memory_order_release);
  }

  void welcome(Accepted accepted, base::Nanoseconds now) {
    if (accepted.purpose != purpose_rendezvous) return;
    Guest guest;
    guest.link = std::make_unique<StreamLink>(std::move(accepted.socket));
    guest.rank = accepted.peer_rank;
    guest.arrived = now;
    guests_.push_back(std::move(guest));
  }

  void listen_to_guests(base::Nanoseconds now) {
    for (auto it = guests_.begin(); it != guests_.end();) {
      bool leave = false;
      const auto frame = it->link->receive();
      if (frame && !it->request) {
        try {
          it->request = decode_join_request(*frame);
          if (it->request->rank != it->rank) {
            throw Error(ErrorCode::transport, fmt::format("rank {} says it is rank {}", it->rank, it->request->rank));
          }
          if (!answer_) register_guest(*it, now);
        } catch (const Error& error) {
          if (!answer_) conclude(error);
        }
      } else if (it->link->closed()) {
        leave = true;
        if (it->request && !answer_) {
          conclude(
              Error(ErrorCode::rank_failed,
                    fmt::format("{} went away while the ranks were joining", describe(it->rank, it->request->self)),
                    "look at its output", it->rank));
        }
      } else if (!it->request && now >= it->arrived + request_patience) {
        leave = true;
      }
      it = leave ? guests_.erase(it) : std::next(it);
    }
  }

  void register_guest(const Guest& guest, base::Nanoseconds now) {
    const JoinRequest& request = *guest.request;
    const std::string name = describe(request.rank, request.self);
    if (request.size < 1 || static_cast<std::size_t>(request.size) > most_ranks || request.rank < 0 ||
        request.rank >= request.size) {
      return conclude(Error(ErrorCode::configuration,
                            fmt::format("{} joins a world of {}: ranks go from 0 to size - 1", name, request.size), "",
                            request.rank));
    }
    if (const auto found = by_rank_.find(request.rank); found != by_rank_.end()) {
      return conclude(
          Error(ErrorCode::configuration,
                fmt::format("two processes join as rank {}: pid {} on {} and pid {} on {}", request.rank,
                            found->second.self.pid, found->second.self.host, request.self.pid, request.self.host),
                "every process needs a rank of its own", request.rank));
    }
    if (!by_rank_.empty()) {
      const auto& [first_rank, first] = *by_rank_.begin();
      if (first.size != request.size) {
        return conclude(Error(ErrorCode::configuration,
                              fmt::format("{} joins a world of {} ranks, {} one of {}",
                                          describe(first_rank, first.self), first.size, name, request.size),
                              "start all ranks with the same world size", request.rank));
      }
      const auto difference = settings_difference(first_rank, first.self, request.rank, request.self);
      if (!difference.empty()) {
        return conclude(Error(ErrorCode::configuration, difference, "set it alike on all ranks", request.rank));
      }
    }
    by_rank_[request.rank] = request;
    const base::Nanoseconds patience = std::clamp<base::Nanoseconds>(request.patience, 0, 24 * 3600 * second);
    if (now + patience < missing_deadline_) {
      missing_deadline_ = now + patience;
      patience_ = patience;
    }
    if (by_rank_.size() == static_cast<std::size_t>(request.size)) {
      JoinAnswer answer;
      for (auto& [rank, known] : by_rank_) answer.peers.push_back(std::move(known.self));
      answer_ = std::move(answer);
      encoded_ = encode(*answer_);
    }
  }

  void conclude_missing() {
    const int size = by_rank_.begin()->second.size;
    std::vector<std::string> missing;
    int first_missing = -1;
    std::size_t count = 0;
    for (int rank = 0; rank < size; ++rank) {
      if (by_rank_.contains(rank)) continue;
      if (first_missing < 0) first_missing = rank;
      if (++count <= 16) missing.push_back(std::to_string(rank));
    }
    if (count > 16) missing.push_back(fmt::format("and {} more", count - 16));
    std::vector<std::string> addresses;
    for (const auto& address : listener_.addresses()) addresses.push_back(address.to_string());
    conclude(Error(ErrorCode::deadline,
                   fmt::format("{} {} of {} did not join within {:.1f} s", count == 1 ? "rank" : "ranks",
                               fmt::join(missing, ", "), size, static_cast<double>(patience_) / 1e9),
                   fmt::format("check that it was started, has this job's unique id, and reaches one of {}",
                               fmt::join(addresses, ", ")),
                   first_missing));
  }

  void conclude(const Error& error) {
    answer_ = JoinAnswer{error, {}};
    encoded_ = encode(*answer_);
  }

  void answer_guests() {
    if (!answer_) return;
    for (auto& guest : guests_) {
      if (guest.answered || !guest.request) continue;
      guest.answered = true;
      guest.link->send(encoded_);
    }
  }

  // Whether all ranks have the table (they close when they do) or had time enough.
  bool farewell(base::Nanoseconds now) {
    if (farewell_deadline_ == base::never) farewell_deadline_ = now + farewell_patience;
    const bool waiting = std::any_of(guests_.begin(), guests_.end(), [](const Guest& guest) { return guest.answered; });
    return !waiting || now >= farewell_deadline_;
  }

  base::Listener listener_;
  Acceptor acceptor_;
  UniqueId id_;
  base::FileDescriptor stop_;
  pid_t creator_;
  std::atomic<bool> finished_{false};

  std::list<Guest> guests_;  // from here on the service thread's
  std::map<int, JoinRequest> by_rank_;
  base::Nanoseconds missing_deadline_ = base::never;
  base::Nanoseconds patience_ = 0;
  base::Nanoseconds farewell_deadline_ = base::never;
  std::optional<JoinAnswer> answer_;
  std::vector<std::byte> encoded_;

  std::unique_ptr<base::SystemThread> thread_;  // last: it uses all the others
};

Rendezvous::Rendezvous(std::unique_ptr<Service> service) : service_(std::move(service)) {}
Rendezvous::~Rendezvous() = default;
Rendezvous::Rendezvous(Rendezvous&&) noexcept = default;
Rendezvous& Rendezvous::operator=(Rendezvous&&) noexcept = default;
const UniqueId& Rendezvous::id() const { return service_->id(); }
bool Rendezvous::finished() const { return service_->finished(); }

Rendezvous start_rendezvous(std::span<const base::SocketAddress> addresses, base::PortRange ports, const Key& key) {
  base::Listener listener(addresses, ports);
  const UniqueId id = make_unique_id(key, listener.addresses(), listener.port());
  return Rendezvous(std::make_unique<Rendezvous::Service>(std::move(listener), key, id));
}

}  // namespace rondo::bootstrap
