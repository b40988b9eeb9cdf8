#include "transports/fifo_layout.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>

#include <bit>

namespace rondo::transport {

bool FifoLayout::valid() const {
  return slots >= 1 && slots <= most_slots && std::has_single_bit(slots) && slot_bytes >= 64 &&
         slot_bytes <= most_slot_bytes && slot_bytes % 64 == 0 && std::size_t{slots} * slot_bytes <= most_bytes;
}

FifoLayout FifoLayout::split(std::size_t fifo_bytes, std::uint32_t count) {
  const std::size_t slot = fifo_bytes / count / 64 * 64;
  const std::size_t least = std::size_t{count} * 4096;
  if (fifo_bytes < least || fifo_bytes > most_bytes) {
    throw Error(ErrorCode::configuration,
                fmt::format("the memory of one connection (RONDO_FIFO_BYTES) is {} bytes, which must be from {} to {}",
                            fifo_bytes, least, most_bytes),
                "524288 works");
  }
  return {count, static_cast<std::uint32_t>(slot)};
}

LocalFifo::LocalFifo(const FifoLayout& layout)
    : layout_(layout),
      memory_(static_cast<std::byte*>(::operator new (layout.bytes(), std::align_val_t{FifoLayout::data_alignment}))),
      fifo_(fifo_at(memory_.get(), layout)) {
  for (std::uint32_t i = 0; i < layout.slots; ++i) new (&fifo_.lines[i]) SlotLine{};
  new (fifo_.credit) CreditLine{};
}

}  // namespace rondo::transport
