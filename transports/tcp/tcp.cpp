#include "transports/tcp/tcp.hpp"

#include <rondo/error.hpp>

#include "transports/tcp/probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace rondo::transport {
namespace {

constexpr std::uint32_t slot_count = 4;
constexpr std::size_t default_fifo_bytes = 1U << 20;

}  // namespace

bool TcpTransport::KeyOrder::operator()(const ConnectionKey& a, const ConnectionKey& b) const {
  return std::tie(a.context, a.source, a.destination, a.tag) < std::tie(b.context, b.source, b.destination, b.tag);
}

TcpTransport::TcpTransport(base::System& system, base::Poller& poller, const bootstrap::Key& key,
                           base::DoorbellWord& own_bell, const TcpOptions& options)
    : system_(system),
      bell_(own_bell),
      options_(options),
      layout_(FifoLayout::split(options.fifo_bytes == 0 ? default_fifo_bytes : options.fifo_bytes, slot_count)),
      key_(key),
      events_(poller),
      around_{system, own_bell, events_, key_, options.rank},
      acceptor_(system, poller, key, options.rank, base::usable_addresses(options.interfaces),
                [this](const tcp::Hello& hello, base::FileDescriptor fd) {
                  {
                    const std::lock_guard lock(mutex_);
                    // The newest wins: an older one that nobody asked for belongs to a sender that has closed.
                    arrived_.insert_or_assign(hello.key, Arrived{std::move(fd), hello.layout});
                  }
                  base::ring(bell_, system_);  // try_open_receive() has news
                }) {}

TcpTransport::~TcpTransport() = default;

std::vector<std::byte> TcpTransport::address() { return tcp::encode_address(acceptor_.addresses()); }

void TcpTransport::start(int rank, std::span<const std::vector<std::byte>> table) {
  if (rank != options_.rank) {
    throw Error(ErrorCode::internal,
                fmt::format("tcp was made for rank {}, and started as rank {}", options_.rank, rank));
  }
  std::vector<std::vector<base::SocketAddress>> peers(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!table[i].empty()) peers[i] = tcp::decode_address(table[i], static_cast<int>(i));
  }
  const std::lock_guard lock(mutex_);
  peers_ = std::move(peers);
}

std::vector<base::SocketAddress>& TcpTransport::addresses_of(int peer) {
  if (peer < 0 || static_cast<std::size_t>(peer) >= peers_.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("rank {} is not from 0 to below {}", peer, peers_.size()), {},
                peer);
  }
  return peers_[static_cast<std::size_t>(peer)];
}

Reach TcpTransport::probe(int peer) {
  std::vector<base::SocketAddress> addresses;
  {
    const std::lock_guard lock(mutex_);
    addresses = addresses_of(peer);
  }
  const auto result =
      tcp::probe_addresses(system_, key_, options_.rank, peer, addresses, system_.now() + probe_deadline);
  if (!result.address) return {false, result.why};
  std::rotate(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(*result.address),
              addresses.begin() + static_cast<std::ptrdiff_t>(*result.address) + 1);
  const std::lock_guard lock(mutex_);
  addresses_of(peer) = std::move(addresses);
  return {true, result.why};
}

SendEnd* TcpTransport::open_send(const ConnectionKey& key) {
  std::shared_ptr<tcp::TcpSender> sender;
  {
    const std::lock_guard lock(mutex_);
    auto addresses = addresses_of(key.destination);
    auto& place = senders_[key];
    if (place != nullptr) return &place->end();
    place = std::make_shared<tcp::TcpSender>(around_, key, layout_, std::move(addresses));
    sender = place;
  }
  try {
    sender->flush();  // starts to connect; the receiver may wait for the connection before anything is sent on it
  } catch (const Error&) {
    // Kept for the owner's next flush() or progress(), from where the engine asks first whether the peer has died.
  }
  return &sender->end();
}

ReceiveEnd* TcpTransport::try_open_receive(const ConnectionKey& key) {
  const std::lock_guard lock(mutex_);
  if (const auto found = receivers_.find(key); found != receivers_.end()) return &found->second->end();
  const auto arrived = arrived_.find(key);
  if (arrived == arrived_.end()) return nullptr;
  auto receiver = tcp::TcpReceiver::create(around_, key, arrived->second.layout, std::move(arrived->second.fd));
  arrived_.erase(arrived);
  return &receivers_.emplace(key, std::move(receiver)).first->second->end();
}

void TcpTransport::close_context(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  // A socket that arrived beside an open end of the same key is the key's next life: the peer closed and reopened
  // first.
  std::erase_if(arrived_, [&](const auto& item) {
    return item.first.context == context && receivers_.find(item.first) == receivers_.end();
  });
  std::erase_if(receivers_, [&](const auto& item) { return item.first.context == context; });
  std::erase_if(senders_, [&](const auto& item) { return item.first.context == context; });
}

void TcpTransport::service() { acceptor_.service(); }

}  // namespace rondo::transport
