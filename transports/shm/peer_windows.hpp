// PeerWindows: this process's views of one peer's windows.
//
// The executor asks for every message that is a reference, so a window that has been mapped is found with one atomic
// load; only the first look takes a lock. Views stay until forget() or destruction. Any thread; see forget().
#pragma once

#include "base/memory_map.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace rondo::transport {

struct WindowView {
  std::uint64_t id = 0;
  std::shared_ptr<base::SharedMemory> memory;
};

class PeerWindows {
 public:
  // The view, or null when it isn't mapped yet.
  const WindowView* find(std::uint64_t id) {
    // Matches the release store in find_or_map().
    const WindowView* const quick = quick_[id % quick_.size()].load(std::memory_order_acquire);
    return quick != nullptr && quick->id == id ? quick : nullptr;
  }
  // The view; `map` makes the memory at the first call (null: there is none, and nothing is remembered).
  template <class Map>
  const WindowView* find_or_map(std::uint64_t id, Map&& map) {
    if (const WindowView* const quick = find(id)) return quick;
    const std::lock_guard lock(mutex_);
    auto& view = views_[id];
    if (view == nullptr) {
      std::shared_ptr<base::SharedMemory> memory;
      try {
        memory = map();
      } catch (...) {
        views_.erase(id);
        throw;
      }
      if (memory == nullptr) {
        views_.erase(id);
        return nullptr;
      }
      view = std::make_unique<WindowView>(WindowView{id, std::move(memory)});
    }
    quick_[id % quick_.size()].store(view.get(), std::memory_order_release);
    return view.get();
  }
  // Nothing may be reading that window, nor look for it at this moment.
  void forget(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = views_.find(id);
    if (found == views_.end()) return;
    const WindowView* expected = found->second.get();
    quick_[id % quick_.size()].compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
    found->second->memory.reset();
    // Somebody who looks for another window may be holding the view to compare its id.
    retired_.push_back(std::move(found->second));
    views_.erase(found);
  }

 private:
  std::array<std::atomic<const WindowView*>, 64> quick_{};
  std::mutex mutex_;
  std::map<std::uint64_t, std::unique_ptr<WindowView>> views_;
  std::vector<std::unique_ptr<WindowView>> retired_;
};

}  // namespace rondo::transport
