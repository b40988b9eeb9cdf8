#include "arena.hpp"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <iterator>

namespace rondo_torch {
namespace {

constexpr std::size_t alignment = 64;  // as torch's own

std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::atomic<bool> forked{false};

// All arenas by their first address, so that a piece's address is enough to give it back.
struct Registry {
  std::mutex mutex;
  std::map<std::byte*, Arena*> arenas;
};
Registry& registry() {
  static auto& all = *new Registry;  // never destroyed: tensors may outlive main()
  return all;
}

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                   [] {
                     forked = true;
                     registry().mutex.unlock();
                   });
  });
}

void release_piece(void* data) { Arena::release(data); }

}  // namespace

Arena::Arena(rondo::WindowMemory memory) : memory_(std::move(memory)) {
  watch_forks();
  add_free(0, memory_.bytes() / alignment * alignment);
  const std::lock_guard lock(registry().mutex);
  registry().arenas.emplace(memory_.data(), this);
}

Arena::~Arena() {
  const std::lock_guard lock(registry().mutex);
  registry().arenas.erase(memory_.data());
}

void Arena::add_free(std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  free_.emplace(offset, bytes);
  free_by_size_.emplace(bytes, offset);
}

c10::DataPtr Arena::allocate(std::size_t bytes) {
  const std::size_t wanted = rounded(bytes);
  if (forked.load(std::memory_order_relaxed) || wanted < bytes || wanted == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto found = free_by_size_.lower_bound({wanted, 0});
  if (found == free_by_size_.end()) return {};
  const auto [size, offset] = *found;
  handed_out_.emplace(offset, wanted);
  free_by_size_.erase(found);
  free_.erase(offset);
  add_free(offset + wanted, size - wanted);
  used_ += wanted;
  if (itself_ == nullptr) itself_ = shared_from_this();
  std::byte* data = memory_.data() + offset;
  return {data, data, &release_piece, c10::Device(c10::DeviceType::CPU)};
}

bool Arena::release(void* data) noexcept {
  auto* const address = static_cast<std::byte*>(data);
  Arena* arena = nullptr;
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto next = all.arenas.upper_bound(address);
    if (next == all.arenas.begin()) return false;
    arena = std::prev(next)->second;
    if (address >= arena->memory_.data() + arena->bytes()) return false;
  }
  // The piece itself keeps the arena alive. In a forked child, whoever held its lock does not live.
  if (!forked.load(std::memory_order_relaxed))
    arena->give_back(static_cast<std::size_t>(address - arena->memory_.data()));
  return true;
}

void Arena::give_back(std::size_t offset) noexcept {
  std::shared_ptr<Arena> last;  // ends after the lock
  const std::lock_guard lock(mutex_);
  const auto piece = handed_out_.find(offset);
  if (piece == handed_out_.end()) return;
  std::size_t bytes = piece->second;
  handed_out_.erase(piece);
  used_ -= bytes;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    free_by_size_.erase({next->second, next->first});
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      free_by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  add_free(offset, bytes);
  if (handed_out_.empty()) last = std::move(itself_);
}

std::size_t Arena::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

namespace {

class OneArena final : public c10::Allocator {
 public:
  explicit OneArena(std::shared_ptr<Arena> arena) : arena_(std::move(arena)) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr piece = arena_->allocate(bytes);
    return piece ? std::move(piece) : c10::GetDefaultCPUAllocator()->allocate(bytes);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  const std::shared_ptr<Arena> arena_;
};

// Stands in front of the allocator that torch had. Never destroyed: tensors may outlive main().
class LargeTensors final : public c10::Allocator {
 public:
  explicit LargeTensors(c10::Allocator* others) : others_(others) { release_other = others->raw_deleter(); }

  void use(std::shared_ptr<Arena> arena, std::size_t smallest) {
    const std::lock_guard lock(mutex_);
    smallest_.store(arena == nullptr ? SIZE_MAX : smallest, std::memory_order_relaxed);
    arena_ = std::move(arena);
  }
  std::shared_ptr<Arena> arena() const {
    const std::lock_guard lock(mutex_);
    return arena_;
  }
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes >= smallest_.load(std::memory_order_relaxed) && !forked.load(std::memory_order_relaxed)) {
      if (const auto from = arena()) {
        if (c10::DataPtr piece = from->allocate(bytes)) return piece;
      }
    }
    return others_->allocate(bytes);
  }
  // Torch's kernels take scratch memory by its address alone. (None where the other allocator cannot do that either.)
  c10::DeleterFnPtr raw_deleter() const override { return release_other == nullptr ? nullptr : &release_any; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static void release_any(void* data) {
    if (!Arena::release(data)) release_other(data);
  }

  static inline c10::DeleterFnPtr release_other = nullptr;
  c10::Allocator* const others_;
  mutable std::mutex mutex_;
  std::shared_ptr<Arena> arena_;
  std::atomic<std::size_t> smallest_{SIZE_MAX};
};

LargeTensors*& installed() {
  static LargeTensors* allocator = nullptr;  // guarded by the caller's lock
  return allocator;
}
std::mutex& installing() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

}  // namespace

std::shared_ptr<c10::Allocator> allocator_of(std::shared_ptr<Arena> arena) {
  return std::make_shared<OneArena>(std::move(arena));
}

void use_for_large_tensors(std::shared_ptr<Arena> arena, std::size_t smallest) {
  const std::lock_guard lock(installing());
  LargeTensors*& allocator = installed();
  if (allocator == nullptr) {
    if (arena == nullptr) return;
    auto made = std::make_unique<LargeTensors>(c10::GetCPUAllocator());
    c10::SetCPUAllocator(made.get());
    TORCH_CHECK(
        c10::GetCPUAllocator() == made.get(),
        "rondo: another library has taken torch's CPU allocator with a higher priority; allocate tensors with the "
        "backend's allocate_tensor instead");
    allocator = made.release();
  }
  allocator->use(std::move(arena), smallest);
}

std::shared_ptr<Arena> arena_in_use() {
  const std::lock_guard lock(installing());
  return installed() == nullptr ? nullptr : installed()->arena();
}

}  // namespace rondo_torch
