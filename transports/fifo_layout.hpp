// FifoLayout: how many slots of which size a connection has, and how they lie in memory. Values; no threads.
//
// LocalFifo owns such memory in this process, for transports whose ends don't share any.
#pragma once

#include "transports/fifo.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace rondo::transport {

// How a FIFO lies in a piece of memory: slot lines, then the credit line a line apart, then the data from the next page
// on.
struct FifoLayout {
  std::uint32_t slots = 0;
  std::uint32_t slot_bytes = 0;
  static constexpr std::size_t data_alignment = 4096;
  std::size_t credit_offset() const { return (slots + 1) * sizeof(SlotLine); }
  std::size_t data_offset() const {
    return (credit_offset() + sizeof(CreditLine) + data_alignment - 1) / data_alignment * data_alignment;
  }
  std::size_t bytes() const {
    return (data_offset() + std::size_t{slots} * slot_bytes + data_alignment - 1) / data_alignment * data_alignment;
  }
  // The values that both sides accept; 30 bits of a slot line hold the length.
  static constexpr std::uint32_t most_slots = 1024;
  static constexpr std::uint32_t most_slot_bytes = 1U << 28;
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;  // of all slots: a peer's hello says what we allocate
  bool valid() const;
  // `fifo_bytes` split into `count` slots. Throws Error(configuration) when it is out of range.
  static FifoLayout split(std::size_t fifo_bytes, std::uint32_t count);
};

// The three parts of a FIFO in memory that somebody else owns.
struct Fifo {
  SlotLine* lines = nullptr;
  CreditLine* credit = nullptr;
  std::byte* data = nullptr;
};

inline Fifo fifo_at(std::byte* base, const FifoLayout& layout) {
  return {reinterpret_cast<SlotLine*>(base), reinterpret_cast<CreditLine*>(base + layout.credit_offset()),
          base + layout.data_offset()};
}

// Lines and credit start at zero; pages of data exist once touched.
class LocalFifo {
 public:
  explicit LocalFifo(const FifoLayout& layout);
  const FifoLayout& layout() const { return layout_; }
  SlotLine& line(std::uint64_t message) const { return fifo_.lines[message & (layout_.slots - 1)]; }
  std::byte* slot(std::uint64_t message) const {
    return fifo_.data + (message & (layout_.slots - 1)) * layout_.slot_bytes;
  }
  CreditLine& credit() const { return *fifo_.credit; }
  const Fifo& parts() const { return fifo_; }

 private:
  struct Release {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{FifoLayout::data_alignment});
    }
  };
  FifoLayout layout_;
  std::unique_ptr<std::byte, Release> memory_;
  Fifo fifo_;
};

}  // namespace rondo::transport
