#include "transports/sim/sim_fabric.hpp"

#include "transports/sim/sim_connection.hpp"

namespace rondo::transport::sim {

SimFabric::SimFabric(SimNetwork& network, int rank, base::System& system)
    : network_(network), rank_(rank), system_(system) {}

const std::string& SimFabric::why(int peer) { return network_.share_memory(rank_, peer) ? near_ : far_; }

SendEnd* SimFabric::open_send(const ConnectionKey& key) {
  auto& connection = sends_[key.context][{key.destination, key.tag}];
  if (connection == nullptr) connection = network_.open(key, system_);
  return &connection->send;
}

ReceiveEnd* SimFabric::try_open_receive(const ConnectionKey& key) {
  auto& connection = receives_[key.context][{key.source, key.tag}];
  if (connection == nullptr) {
    connection = network_.try_take(key);
    if (connection == nullptr) return nullptr;
    connection->take(system_);
  }
  return &connection->receive;
}

void SimFabric::close_context(std::uint64_t context) {
  sends_.erase(context);
  receives_.erase(context);
}

// A rank that shares memory with nobody has windows of no use, as with tcp alone.
std::shared_ptr<WindowMapping> SimFabric::allocate_window(std::size_t bytes) {
  for (int peer = 0; peer < network_.size(); ++peer)
    if (peer != rank_ && network_.share_memory(rank_, peer)) return network_.allocate_window(rank_, bytes);
  return nullptr;
}

const std::byte* SimFabric::map_peer_window(int peer, std::uint64_t id) {
  if (!network_.share_memory(rank_, peer)) return nullptr;
  const WindowMapping* window = network_.find_window(peer, id);
  return window == nullptr ? nullptr : window->data;
}

std::size_t SimFabric::peer_window_bytes(int peer, std::uint64_t id) {
  const WindowMapping* window = network_.share_memory(rank_, peer) ? network_.find_window(peer, id) : nullptr;
  return window == nullptr ? 0 : window->bytes;
}

}  // namespace rondo::transport::sim
