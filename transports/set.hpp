// TransportSet: the transports of one rank, and which of them leads to which peer.
//
// Owns the transports that the setting allows, best first. Life as a Transport's: constructed -> address() into the
// table -> start(table) -> opens -> close_context() -> destruction (after the service thread has ended). own_bell() is
// valid from construction on: it lies in shared memory when shm is allowed.
//
// A peer's transport is found at its first use, or by probe_all(): the first in the setting's order that reaches it
// with a verified data pattern. Probing blocks for up to a few seconds and needs the peer's service thread to run, so
// never call it, nor what may do it (open_send, map_peer_window), on the service thread.
//
// Threads: service() on the service thread alone, everything else anywhere. Errors are rondo::Error.
#pragma once

#include "base/poller.hpp"
#include "bootstrap/key.hpp"
#include "transports/fabric.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::transport {

class LocalWorld;
class ShmTransport;

struct TransportOptions {
  std::string list = "shm,tcp";  // allowed transports, best first
  int ranks = 1;                 // of the world; scales the default memory of a connection
  std::size_t fifo_bytes = 0;    // memory of one connection; 0: each transport's default
  std::string interfaces;        // as RONDO_INTERFACES; empty: all usable
  bool ringer_fences = false;    // see base/doorbell.hpp
};

class TransportSet final : public Fabric {
 public:
  // Throws Error(configuration) on an unknown or repeated name in the list.
  TransportSet(base::System& system, base::Poller& poller, const bootstrap::Key& key, int rank,
               const TransportOptions& options);
  // Rank `rank` of the ranks that share `world`: threads of one process; no descriptors, no service thread needed.
  TransportSet(base::System& system, std::shared_ptr<LocalWorld> world, int rank, const TransportOptions& options);
  ~TransportSet() override;

  base::DoorbellWord& own_bell() override { return *bell_; }
  std::vector<std::byte> address();
  void start(std::span<const std::vector<std::byte>> table);
  // Finds every peer's transport now. Throws Error(transport) naming a peer that no transport reaches.
  void probe_all() override;

  // "shm", "tcp" or "self", and why that one (and why not those before it). May probe.
  std::string_view name(int peer) override { return choice(peer).name; }
  bool is_wire(int peer) { return choice(peer).transport->is_wire(); }
  const std::string& why(int peer) override { return choice(peer).why; }

  SendEnd* open_send(const ConnectionKey& key) override;
  ReceiveEnd* try_open_receive(const ConnectionKey& key) override;
  void close_context(std::uint64_t context) override;

  // Null without shm.
  std::shared_ptr<WindowMapping> allocate_window(std::size_t bytes) override;
  // Null, and 0, when the peer can't be mapped. Cheap once a window has been mapped.
  const std::byte* map_peer_window(int peer, std::uint64_t id) override;
  std::size_t peer_window_bytes(int peer, std::uint64_t id) override;
  // Drops this process's view of a window that its owner releases; nothing may be reading it.
  void forget_peer_window(int peer, std::uint64_t id);

  void service() override;

 private:
  struct Choice {
    Transport* transport = nullptr;
    std::string_view name;
    std::string why;
  };
  const Choice& choice(int peer);
  std::unique_ptr<Choice> choose(int peer);

  int rank_;
  base::DoorbellWord local_bell_;  // when there is no shm
  base::DoorbellWord* bell_ = &local_bell_;
  ShmTransport* shm_ = nullptr;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Choice>> choices_;           // by peer; guarded by mutex_
  std::vector<std::atomic<const Choice*>> quick_choices_;  // the same, for reading without the lock
};

}  // namespace rondo::transport
