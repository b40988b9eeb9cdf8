#include "transports/sim/sim_network.hpp"

#include "transports/sim/sim_connection.hpp"

#include <cstdlib>
#include <new>

namespace rondo::transport::sim {
namespace {

struct SimWindow final : WindowMapping {
  struct Release {
    void operator()(std::byte* pages) const { ::operator delete (pages, std::align_val_t{4096}); }
  };
  explicit SimWindow(std::size_t size)
      : memory(static_cast<std::byte*>(::operator new (size, std::align_val_t{4096}))) {
    data = memory.get();
    bytes = size;
  }
  std::unique_ptr<std::byte, Release> memory;
};

}  // namespace

SimNetwork::SimNetwork(Scheduler& scheduler, const NetworkOptions& options)
    : scheduler_(scheduler), options_(options), events_system_(scheduler, -1), bells_(options.hosts.size()) {}
SimNetwork::~SimNetwork() = default;

void SimNetwork::isolate(int rank) {
  if (!isolated_.insert(rank).second) return;
  for (const auto& hook : isolate_hooks_) hook(rank);
}

std::shared_ptr<SimConnection> SimNetwork::open(const ConnectionKey& key, base::System& system) {
  auto connection = std::make_shared<SimConnection>(*this, key, system);
  offered_[key_of(key)] = connection;
  // Shared memory shows at once and needs no ring: the first message rings. On a wire news takes its time.
  if (connection->shared) {
    connection->announced = true;
  } else if (!isolated(key.source)) {
    scheduler_.after(delay(), [this, weak = std::weak_ptr(connection)] {
      const auto alive = weak.lock();
      if (alive == nullptr) return;
      alive->announced = true;
      ring(alive->key.destination);
    });
  }
  return connection;
}

std::shared_ptr<SimConnection> SimNetwork::try_take(const ConnectionKey& key) {
  const auto it = offered_.find(key_of(key));
  if (it == offered_.end() || !it->second->announced) return nullptr;
  auto connection = std::move(it->second);
  offered_.erase(it);
  return connection;
}

std::shared_ptr<WindowMapping> SimNetwork::allocate_window(int rank, std::size_t bytes) {
  auto window = std::make_shared<SimWindow>(bytes);
  window->id = windows_.size() + 1;
  windows_[{rank, window->id}] = window;
  return window;
}

const WindowMapping* SimNetwork::find_window(int rank, std::uint64_t id) const {
  const auto it = windows_.find({rank, id});
  return it == windows_.end() ? nullptr : it->second.get();
}

}  // namespace rondo::transport::sim
