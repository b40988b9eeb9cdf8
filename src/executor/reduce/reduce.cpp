#include "executor/reduce/reduce.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>

#include "executor/reduce/kernel_table.hpp"

namespace rondo::executor {

namespace {

const KernelTable& kernel_table() {
  static const KernelTable table = make_kernel_table();
  return table;
}

void copy_ordinary(const void* source, void* destination, std::size_t bytes) {
  if (source != destination && bytes != 0) std::memcpy(destination, source, bytes);
}

void copy_streaming(const void* source, void* destination, std::size_t bytes) {
  static const StreamCopy kernel = stream_copy();
  if (source != destination && bytes != 0) kernel(source, destination, bytes);
}

// A piece of the source that stays in the first-level cache while it is written to every destination.
constexpr std::size_t copy_piece = 16 * 1024;

}  // namespace

KernelTable make_kernel_table() {
  KernelTable table;
  fill_integer_kernels(table);
  fill_wide_float_kernels(table);
  fill_half_float_kernels(table);
  fill_float8_kernels(table);
  return table;
}

ReduceKernel reduce_kernel(DataType type, ReduceOp op) {
  const auto t = static_cast<std::size_t>(type);
  const auto o = static_cast<std::size_t>(op);
  if (t >= data_type_count || o >= reduce_op_count) return nullptr;
  return kernel_table().kernels[t][o];
}

void copy(const void* source, void* const* destinations, std::size_t destination_count, std::size_t bytes,
          bool stream_first_destination) {
  if (destination_count == 0) return;
  if (destination_count == 1) return copy(source, destinations[0], bytes, stream_first_destination);
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t done = 0; done < bytes; done += copy_piece) {
    const std::size_t piece = std::min(copy_piece, bytes - done);
    for (std::size_t i = 0; i < destination_count; ++i) {
      auto* to = static_cast<std::byte*>(destinations[i]) + done;
      if (i == 0 && stream_first_destination) {
        copy_streaming(from + done, to, piece);
      } else {
        copy_ordinary(from + done, to, piece);
      }
    }
  }
  if (stream_first_destination) hwy::FlushStream();
}

void copy(const void* source, void* destination, std::size_t bytes, bool stream) {
  if (stream) {
    copy_streaming(source, destination, bytes);
    hwy::FlushStream();
  } else {
    copy_ordinary(source, destination, bytes);
  }
}

}  // namespace rondo::executor
