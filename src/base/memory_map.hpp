// SharedMemory: anonymous memory that other processes map through its descriptor. Nothing is named, so nothing stays.
//
// Owns the descriptor and the mapping; both go with it. Pages are taken when first touched. A creator seals the size,
// and an adopter insists on the seal: nobody can shrink the memory under a reader. Immutable after construction, so any
// thread may use it. Errors are Error(system), or Error(transport) for a descriptor that a peer passed and that isn't
// what it should be.
#pragma once

#include "base/fork_guard.hpp"

#include <cstddef>

namespace rondo::base {

std::size_t page_size();

class SharedMemory {
 public:
  SharedMemory() = default;
  // `bytes` (rounded up to a page) of zeroed memory. `label` appears in /proc/self/maps.
  static SharedMemory create(const char* label, std::size_t bytes);
  // Takes the descriptor of another process's SharedMemory, also when it throws. `peer` is named in errors.
  static SharedMemory adopt(int fd, bool writable, int peer);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int fd() const { return fd_; }
  // The mapping stays.
  void close_descriptor();
  // Asks for huge pages where the system has them for shared memory; no promise.
  void advise_huge_pages() const;

 private:
  SharedMemory(int fd, std::byte* data, std::size_t bytes) : fd_(fd), data_(data), bytes_(bytes) { own_descriptor(fd); }

  int fd_ = -1;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rondo::base
