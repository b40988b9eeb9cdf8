// Arena: window memory, reserved once by all ranks together, handed out locally. use_for_large_tensors() lets torch
// take from one whatever CPU tensors it makes.
#pragma once

#include <rondo/window.hpp>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

namespace rondo_torch {

// Thread-safe. Pieces are aligned to 64 bytes, best fit, and join their free neighbours when they are given back; any
// of them keeps the arena alive. In a forked child nothing is handed out or taken back: the memory is its parent's.
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  explicit Arena(rondo::WindowMemory memory);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A piece, whose context is its address, or an empty pointer if none is free that is large enough.
  c10::DataPtr allocate(std::size_t bytes);
  // Gives back a piece of any arena; false if the address is in none.
  static bool release(void* data) noexcept;

  std::size_t bytes() const { return memory_.bytes(); }
  // Bytes handed out, rounded up to their alignment.
  std::size_t used() const;

 private:
  void give_back(std::size_t offset) noexcept;
  void add_free(std::size_t offset, std::size_t bytes);

  const rondo::WindowMemory memory_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;                     // offset, bytes
  std::set<std::pair<std::size_t, std::size_t>> free_by_size_;  // bytes, offset
  std::unordered_map<std::size_t, std::size_t> handed_out_;     // offset, bytes
  std::shared_ptr<Arena> itself_;                               // while anything is handed out
  std::size_t used_ = 0;
};

// One for torch's own calls: from `arena` while it has room, else from torch's CPU allocator.
std::shared_ptr<c10::Allocator> allocator_of(std::shared_ptr<Arena> arena);

// From now on every CPU tensor of `smallest` bytes and more, in all threads, comes from `arena` while that has room.
// Replaces the arena of an earlier call. nullptr: none does.
void use_for_large_tensors(std::shared_ptr<Arena> arena, std::size_t smallest);
// The one in use, or nullptr.
std::shared_ptr<Arena> arena_in_use();

}  // namespace rondo_torch
