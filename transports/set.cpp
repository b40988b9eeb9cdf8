#include "transports/set.hpp"

#include <rondo/error.hpp>

#include "transports/address_table.hpp"
#include "transports/shm/shm.hpp"
#include "transports/tcp/tcp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rondo::transport {
namespace {

std::vector<std::string> parse_list(const std::string& list) {
  std::vector<std::string> names;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::configuration, fmt::format("RONDO_TRANSPORTS is '{}': {}", list, what),
                "shm,tcp works; the best comes first");
  };
  std::size_t from = 0;
  while (from <= list.size()) {
    const std::size_t to = std::min(list.find(',', from), list.size());
    const std::string name = list.substr(from, to - from);
    if (name != "shm" && name != "tcp") refuse(fmt::format("there is no transport '{}', only shm and tcp", name));
    if (std::find(names.begin(), names.end(), name) != names.end()) refuse(fmt::format("{} appears twice", name));
    names.push_back(name);
    from = to + 1;
  }
  return names;
}

}  // namespace

TransportSet::TransportSet(base::System& system, base::Poller& poller, const bootstrap::Key& key, int rank,
                           const TransportOptions& options)
    : rank_(rank),
      choices_(static_cast<std::size_t>(options.ranks)),
      quick_choices_(static_cast<std::size_t>(options.ranks)) {
  local_bell_.ringer_fences.store(options.ringer_fences ? 1 : 0, std::memory_order_relaxed);
  const auto names = parse_list(options.list);
  std::unique_ptr<ShmTransport> shm;
  if (std::find(names.begin(), names.end(), "shm") != names.end()) {
    shm = std::make_unique<ShmTransport>(system, poller, key,
                                         ShmOptions{rank, options.ranks, options.fifo_bytes, options.ringer_fences});
    shm_ = shm.get();
    bell_ = &shm->own_bell();
  }
  for (const std::string& name : names) {
    if (name == "shm") {
      transports_.push_back(std::move(shm));
    } else {
      transports_.push_back(std::make_unique<TcpTransport>(system, poller, key, *bell_,
                                                           TcpOptions{rank, options.fifo_bytes, options.interfaces}));
    }
  }
}

TransportSet::TransportSet(base::System& system, std::shared_ptr<LocalWorld> world, int rank,
                           const TransportOptions& options)
    : rank_(rank),
      choices_(static_cast<std::size_t>(options.ranks)),
      quick_choices_(static_cast<std::size_t>(options.ranks)) {
  auto shm = std::make_unique<ShmTransport>(system, std::move(world),
                                            ShmOptions{rank, options.ranks, options.fifo_bytes, options.ringer_fences});
  shm_ = shm.get();
  bell_ = &shm->own_bell();
  transports_.push_back(std::move(shm));
}

// tcp rings the bell that lies in shm's arena, so it goes first, whatever the order of the list.
TransportSet::~TransportSet() {
  std::erase_if(transports_, [&](const auto& transport) { return transport.get() != shm_; });
}

std::vector<std::byte> TransportSet::address() {
  std::vector<std::pair<std::string_view, std::vector<std::byte>>> addresses;
  for (const auto& transport : transports_) addresses.emplace_back(transport->name(), transport->address());
  return encode_addresses(addresses);
}

void TransportSet::start(std::span<const std::vector<std::byte>> table) {
  std::vector<std::map<std::string, std::vector<std::byte>>> blobs;
  blobs.reserve(table.size());
  for (const auto& addresses : table) blobs.push_back(decode_addresses(addresses));
  for (const auto& transport : transports_) {
    std::vector<std::vector<std::byte>> own(table.size());
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (const auto found = blobs[i].find(std::string(transport->name())); found != blobs[i].end()) {
        own[i] = found->second;
      }
    }
    transport->start(rank_, own);
  }
}

std::unique_ptr<TransportSet::Choice> TransportSet::choose(int peer) {
  std::string failures;
  for (const auto& transport : transports_) {
    const Reach reach = transport->probe(peer);
    if (reach.reachable) {
      auto choice = std::make_unique<Choice>();
      choice->transport = transport.get();
      choice->name = peer == rank_ && transport.get() == shm_ ? "self" : transport->name();
      choice->why = failures.empty() ? reach.why : fmt::format("{} (not {})", reach.why, failures);
      return choice;
    }
    failures += fmt::format("{}{}: {}", failures.empty() ? "" : "; ", transport->name(), reach.why);
  }
  throw Error(ErrorCode::transport, fmt::format("no transport reaches rank {}: {}", peer, failures),
              "ranks on different hosts need tcp in RONDO_TRANSPORTS and an address that is open to each other", peer);
}

const TransportSet::Choice& TransportSet::choice(int peer) {
  if (peer < 0 || static_cast<std::size_t>(peer) >= choices_.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("rank {} is not from 0 to below {}", peer, choices_.size()),
                {}, peer);
  }
  const auto at = static_cast<std::size_t>(peer);
  if (const Choice* const quick = quick_choices_[at].load(std::memory_order_acquire)) return *quick;
  const std::lock_guard lock(mutex_);
  if (choices_[at] == nullptr) choices_[at] = choose(peer);
  quick_choices_[at].store(choices_[at].get(), std::memory_order_release);  // matches the load above
  return *choices_[at];
}

void TransportSet::probe_all() {
  // Each rank starts behind itself, so that not everybody asks rank 0 first.
  const int ranks = static_cast<int>(choices_.size());
  for (int i = 1; i <= ranks; ++i) choice((rank_ + i) % ranks);
}

SendEnd* TransportSet::open_send(const ConnectionKey& key) { return choice(key.destination).transport->open_send(key); }

ReceiveEnd* TransportSet::try_open_receive(const ConnectionKey& key) {
  // The sender decides. It may have chosen a transport behind ours in the list, if its probe of ours failed.
  Transport* const chosen = choice(key.source).transport;
  bool reached = false;
  for (const auto& transport : transports_) {
    reached = reached || transport.get() == chosen;
    if (!reached) continue;
    if (ReceiveEnd* const end = transport->try_open_receive(key)) return end;
  }
  return nullptr;
}

void TransportSet::close_context(std::uint64_t context) {
  for (const auto& transport : transports_) transport->close_context(context);
}

std::shared_ptr<WindowMapping> TransportSet::allocate_window(std::size_t bytes) {
  return shm_ == nullptr ? nullptr : shm_->allocate_window(bytes);
}

const std::byte* TransportSet::map_peer_window(int peer, std::uint64_t id) {
  return shm_ == nullptr || choice(peer).transport != shm_ ? nullptr : shm_->map_peer_window(peer, id);
}

std::size_t TransportSet::peer_window_bytes(int peer, std::uint64_t id) {
  return shm_ == nullptr || choice(peer).transport != shm_ ? 0 : shm_->peer_window_bytes(peer, id);
}

void TransportSet::forget_peer_window(int peer, std::uint64_t id) {
  if (shm_ != nullptr) shm_->forget_peer_window(peer, id);
}

void TransportSet::service() {
  for (const auto& transport : transports_) transport->service();
}

}  // namespace rondo::transport
