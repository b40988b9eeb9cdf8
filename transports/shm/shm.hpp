// ShmTransport: connections and windows through shared memory, between processes of one host or threads of one process.
//
// Every rank has one arena (arena.hpp) that its peers map. A connection lies in its sender's arena; sending to oneself
// is a connection in the own arena. Arenas and windows are anonymous and passed by descriptor over an abstract Unix
// socket behind the mutual handshake (descriptor_server.hpp); ranks in one process share mappings through a LocalWorld
// and use no descriptors of each other. That a peer is on this host is never inferred: its socket answers and the
// memory carries the data pattern of its address, or it is not reachable.
//
// Threads: service() on the service thread; the rest anywhere. The first use of a peer (probe, or the first open or
// window) blocks for at most `peer_deadline` while the peer's service thread answers: not for the service thread.
// After probe() opens don't block. Ends live until close_context().
#pragma once

#include "base/poller.hpp"
#include "bootstrap/key.hpp"
#include "transports/shm/arena.hpp"
#include "transports/shm/local_world.hpp"
#include "transports/transport.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace rondo::transport {

class DescriptorServer;
class PeerWindows;

struct ShmOptions {
  int rank = 0;
  int ranks = 1;
  std::size_t fifo_bytes = 0;  // 0: 512 KiB, less in worlds of more than 8 ranks
  bool ringer_fences = false;
};

class ShmTransport final : public Transport {
 public:
  static constexpr base::Nanoseconds peer_deadline = 5'000'000'000;

  ShmTransport(base::System& system, base::Poller& poller, const bootstrap::Key& key, const ShmOptions& options);
  ShmTransport(base::System& system, std::shared_ptr<LocalWorld> world, const ShmOptions& options);
  ~ShmTransport() override;

  // This rank's doorbell, in its arena; valid as long as the transport.
  base::DoorbellWord& own_bell() { return arena_.view().bell(); }

  std::string_view name() const override { return "shm"; }
  std::vector<std::byte> address() override;
  void start(int rank, std::span<const std::vector<std::byte>> table) override;
  Reach probe(int peer) override;
  SendEnd* open_send(const ConnectionKey& key) override;
  ReceiveEnd* try_open_receive(const ConnectionKey& key) override;
  void close_context(std::uint64_t context) override;
  std::shared_ptr<WindowMapping> allocate_window(std::size_t bytes) override;
  const std::byte* map_peer_window(int peer, std::uint64_t id) override;
  // Size of a window that map_peer_window() mapped; 0 when it can't be mapped.
  std::size_t peer_window_bytes(int peer, std::uint64_t id);
  // Unmaps it; nothing may be reading it.
  void forget_peer_window(int peer, std::uint64_t id);
  void service() override;

 private:
  struct Peer;
  struct Receiver {
    ReceiveEnd end;
    DirectoryHit hit;
  };
  struct KeyOrder {
    bool operator()(const ConnectionKey& a, const ConnectionKey& b) const;
  };

  Peer& peer_at(int rank);
  const ArenaView& view(int rank);
  std::shared_ptr<base::SharedMemory> map_arena(int rank, Peer& peer, Nonce& nonce);
  std::shared_ptr<base::SharedMemory> find_window(int rank, std::uint64_t id);

  base::System& system_;
  ShmOptions options_;
  FifoLayout layout_;
  OwnArena arena_;  // guarded by mutex_, but for its view
  std::shared_ptr<LocalWorld> world_;
  std::shared_ptr<WindowRegistry> windows_;
  bootstrap::Key key_{};
  std::unique_ptr<DescriptorServer> server_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::mutex mutex_;
  std::map<ConnectionKey, std::unique_ptr<SendEnd>, KeyOrder> senders_;
  std::map<ConnectionKey, std::unique_ptr<Receiver>, KeyOrder> receivers_;
};

}  // namespace rondo::transport
