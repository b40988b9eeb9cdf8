// LocalWorld: what ranks that are threads of one process share instead of descriptors: the same mappings.
//
// Held by a shared_ptr in every rank's transport. Any thread. One mapping of each memory in the process is also what
// lets a race detector see both sides.
#pragma once

#include "base/memory_map.hpp"
#include "transports/shm/arena.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace rondo::transport {

// The windows that one rank has allocated and not yet released. Outlives the transport while a window does.
class WindowRegistry {
 public:
  // Returns the new window's id, from 1 on.
  std::uint64_t add(std::shared_ptr<base::SharedMemory> memory);
  void remove(std::uint64_t id);
  // Null when there is no such window (any more).
  std::shared_ptr<base::SharedMemory> find(std::uint64_t id) const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<base::SharedMemory>> windows_;
};

class LocalWorld {
 public:
  struct Rank {
    std::shared_ptr<base::SharedMemory> arena;  // null until the rank's transport exists
    Nonce nonce{};
    std::shared_ptr<WindowRegistry> windows;
  };

  explicit LocalWorld(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}
  int ranks() const { return static_cast<int>(ranks_.size()); }
  void join(int rank, Rank entry);
  Rank find(int rank) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
};

}  // namespace rondo::transport
