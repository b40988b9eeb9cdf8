#include "transports/shm/local_world.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace rondo::transport {

std::uint64_t WindowRegistry::add(std::shared_ptr<base::SharedMemory> memory) {
  const std::lock_guard lock(mutex_);
  windows_.emplace(++last_id_, std::move(memory));
  return last_id_;
}

void WindowRegistry::remove(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  windows_.erase(id);
}

std::shared_ptr<base::SharedMemory> WindowRegistry::find(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(id);
  return found == windows_.end() ? nullptr : found->second;
}

void LocalWorld::join(int rank, Rank entry) {
  const std::lock_guard lock(mutex_);
  if (rank < 0 || rank >= static_cast<int>(ranks_.size()) || ranks_[static_cast<std::size_t>(rank)].arena != nullptr) {
    throw Error(
        ErrorCode::internal,
        fmt::format("rank {} cannot join a local world of {} ranks (out of range, or twice)", rank, ranks_.size()));
  }
  ranks_[static_cast<std::size_t>(rank)] = std::move(entry);
}

LocalWorld::Rank LocalWorld::find(int rank) const {
  const std::lock_guard lock(mutex_);
  return rank < 0 || rank >= static_cast<int>(ranks_.size()) ? Rank{} : ranks_[static_cast<std::size_t>(rank)];
}

}  // namespace rondo::transport
