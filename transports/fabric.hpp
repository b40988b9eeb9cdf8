// Fabric: what the engine and the communicator see of all transports together, peer by peer.
//
// TransportSet is the real one; transports/sim/ has one in virtual time. Threads: service() on the service thread
// alone, the rest anywhere. Ranks are world ranks.
#pragma once

#include "transports/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rondo::transport {

class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  virtual base::DoorbellWord& own_bell() = 0;
  // Finds every peer's path; throws Error(transport) naming one that cannot be reached.
  virtual void probe_all() = 0;
  // The transport that leads to a peer, and why that one.
  virtual std::string_view name(int peer) = 0;
  virtual const std::string& why(int peer) = 0;

  virtual SendEnd* open_send(const ConnectionKey& key) = 0;
  virtual ReceiveEnd* try_open_receive(const ConnectionKey& key) = 0;
  virtual void close_context(std::uint64_t context) = 0;
  virtual std::shared_ptr<WindowMapping> allocate_window(std::size_t bytes) = 0;
  virtual const std::byte* map_peer_window(int peer, std::uint64_t id) = 0;
  virtual std::size_t peer_window_bytes(int peer, std::uint64_t id) = 0;
  virtual void service() = 0;
};

}  // namespace rondo::transport
