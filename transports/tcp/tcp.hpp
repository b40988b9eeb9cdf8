// TcpTransport: a socket for each connection, to any peer whose address answers.
//
// The sender connects, the receiver's service thread accepts; both ends keep the FIFO's memory locally and a pump moves
// the messages (sender.hpp, receiver.hpp). Every socket starts with the mutual handshake.
//
// Threads: service() on the service thread; probe() blocks and must not be called there; the rest anywhere, never
// blocking. The doorbell is this rank's own and outlives the transport.
#pragma once

#include "base/poller.hpp"
#include "bootstrap/key.hpp"
#include "transports/tcp/acceptor.hpp"
#include "transports/tcp/receiver.hpp"
#include "transports/tcp/sender.hpp"
#include "transports/transport.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace rondo::transport {

struct TcpOptions {
  int rank = 0;
  std::size_t fifo_bytes = 0;  // 0: 1 MiB
  std::string interfaces;      // see base::usable_addresses
};

class TcpTransport final : public Transport {
 public:
  static constexpr base::Nanoseconds probe_deadline = 5'000'000'000;

  TcpTransport(base::System& system, base::Poller& poller, const bootstrap::Key& key, base::DoorbellWord& own_bell,
               const TcpOptions& options);
  ~TcpTransport() override;

  std::string_view name() const override { return "tcp"; }
  bool is_wire() const override { return true; }
  std::vector<std::byte> address() override;
  void start(int rank, std::span<const std::vector<std::byte>> table) override;
  Reach probe(int peer) override;
  SendEnd* open_send(const ConnectionKey& key) override;
  ReceiveEnd* try_open_receive(const ConnectionKey& key) override;
  void close_context(std::uint64_t context) override;
  void service() override;

 private:
  struct KeyOrder {
    bool operator()(const ConnectionKey& a, const ConnectionKey& b) const;
  };
  struct Arrived {
    base::FileDescriptor fd;
    FifoLayout layout;
  };
  // The peer's addresses, the one that answered a probe first.
  std::vector<base::SocketAddress>& addresses_of(int peer);

  base::System& system_;
  base::DoorbellWord& bell_;
  TcpOptions options_;
  FifoLayout layout_;
  bootstrap::Key key_;
  tcp::WireEvents events_;
  tcp::Surroundings around_;
  std::mutex mutex_;
  std::vector<std::vector<base::SocketAddress>> peers_;                             // guarded by mutex_
  std::map<ConnectionKey, std::shared_ptr<tcp::TcpSender>, KeyOrder> senders_;      // guarded by mutex_
  std::map<ConnectionKey, std::shared_ptr<tcp::TcpReceiver>, KeyOrder> receivers_;  // guarded by mutex_
  std::map<ConnectionKey, Arrived, KeyOrder> arrived_;  // sockets that nobody has asked for yet; guarded by mutex_
  tcp::Acceptor acceptor_;                              // last: it calls into the above
};

}  // namespace rondo::transport
