// SimFabric: the Fabric of one simulated rank. The network does the work and outlives it.
#pragma once

#include "transports/fabric.hpp"
#include "transports/sim/sim_network.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace rondo::transport::sim {

class SimFabric final : public Fabric {
 public:
  SimFabric(SimNetwork& network, int rank, base::System& system);
  base::DoorbellWord& own_bell() override { return network_.bell(rank_); }
  void probe_all() override {}
  std::string_view name(int) override { return "sim"; }
  const std::string& why(int peer) override;
  SendEnd* open_send(const ConnectionKey& key) override;
  ReceiveEnd* try_open_receive(const ConnectionKey& key) override;
  void close_context(std::uint64_t context) override;
  std::shared_ptr<WindowMapping> allocate_window(std::size_t bytes) override;
  const std::byte* map_peer_window(int peer, std::uint64_t id) override;
  std::size_t peer_window_bytes(int peer, std::uint64_t id) override;
  void service() override {}

 private:
  using Key = std::pair<int, std::uint32_t>;  // peer and tag
  SimNetwork& network_;
  int rank_;
  base::System& system_;
  std::string near_ = "the same simulated host";
  std::string far_ = "another simulated host";
  // By context.
  std::map<std::uint64_t, std::map<Key, std::shared_ptr<SimConnection>>> sends_;
  std::map<std::uint64_t, std::map<Key, std::shared_ptr<SimConnection>>> receives_;
};

}  // namespace rondo::transport::sim
