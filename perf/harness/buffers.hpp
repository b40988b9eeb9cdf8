// The memory a benchmark works on: plain, or window memory shared by the ranks of a host (-R).
#pragma once

#include <rondo/communicator.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace rondo::perf {

// Owns `bytes` of memory aligned to a page, every page touched. Move-only. Creating a window is collective. Throws
// rondo::Error where there is not enough memory.
class Buffer {
 public:
  Buffer(Communicator& communicator, std::size_t bytes, bool window);
  std::byte* data() const { return window_.data() != nullptr ? window_.data() : plain_.get(); }
  std::span<std::byte> span(std::size_t offset, std::size_t bytes) const { return {data() + offset, bytes}; }

 private:
  static constexpr std::align_val_t page{4096};
  struct Release {
    void operator()(std::byte* memory) const { ::operator delete(memory, page); }
  };
  WindowMemory window_;
  std::unique_ptr<std::byte, Release> plain_;
};

}  // namespace rondo::perf
