// Judging a call's arguments before anything starts. All throw Error(invalid_argument) with value, constraint and hint.
#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace rondo::communicator {

struct Range {
  std::string_view name;
  const void* data = nullptr;
  std::size_t elements = 0;
};

// The checks are inline, for they are a good part of a small collective; what they refuse is composed out of line.
[[noreturn]] void refuse_type(std::string_view call, DataType type);
[[noreturn]] void refuse_reduction(std::string_view call, DataType type, Reduction op);
[[noreturn]] void refuse_root(std::string_view call, int root, int size);
[[noreturn]] void refuse_buffer(std::string_view call, const Range& range, DataType type);
[[noreturn]] void refuse_overlap(std::string_view call, const Range& input, const Range& output, DataType type,
                                 std::string_view in_place_form);

inline void check_type(std::string_view call, DataType type) {
  if (static_cast<int>(type) >= data_type_count) [[unlikely]]
    refuse_type(call, type);
}

inline void check_reduction(std::string_view call, DataType type, Reduction op) {
  if (op.op > ReduceOp::avg &&
      (static_cast<int>(op.op) >= reduce_op_count || is_integer(type) == (op.op == ReduceOp::scaled_sum))) [[unlikely]]
    refuse_reduction(call, type, op);
}

inline void check_root(std::string_view call, int root, int size) {
  if (root < 0 || root >= size) [[unlikely]]
    refuse_root(call, root, size);
}

// Null only with zero elements; the range must fit the address space.
inline void check_buffer(std::string_view call, const Range& range, DataType type) {
  if (range.elements == 0) return;
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  std::size_t bytes = 0;
  if (range.data == nullptr || __builtin_mul_overflow(range.elements, size_of(type), &bytes) || bytes > most ||
      reinterpret_cast<std::uintptr_t>(range.data) > std::numeric_limits<std::uintptr_t>::max() - most) [[unlikely]]
    refuse_buffer(call, range, type);
}

// Disjoint, unless element input_offset of the input is element output_offset of the output (the documented in-place
// form).
inline void check_overlap(std::string_view call, const Range& input, const Range& output, DataType type,
                          std::size_t input_offset, std::size_t output_offset, std::string_view in_place_form) {
  if (input.elements == 0 || output.elements == 0) return;
  const std::size_t element = size_of(type);
  const auto in = reinterpret_cast<std::uintptr_t>(input.data);
  const auto out = reinterpret_cast<std::uintptr_t>(output.data);
  if (in + input.elements * element <= out || out + output.elements * element <= in) return;
  if (in + input_offset * element == out + output_offset * element) return;
  refuse_overlap(call, input, output, type, in_place_form);
}

// a * b without overflow.
std::size_t checked_product(std::string_view call, std::size_t a, std::size_t b);

}  // namespace rondo::communicator
