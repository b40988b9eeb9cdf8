#include "communicator/validate.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <limits>

namespace rondo::communicator {

void check_type(std::string_view call, DataType type) {
  if (static_cast<int>(type) >= data_type_count)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: type {} is not a DataType", call, static_cast<int>(type)),
                fmt::format("use 0 (int8) to {} (float8_e5m2)", data_type_count - 1));
}

void check_reduction(std::string_view call, DataType type, Reduction op) {
  if (static_cast<int>(op.op) >= reduce_op_count)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: operator {} is not a ReduceOp", call, static_cast<int>(op.op)),
                fmt::format("use 0 (sum) to {} (bxor)", reduce_op_count - 1));
  if (is_bitwise(op.op) && !is_integer(type))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} is defined on integers, not on {}", call, name_of(op.op), name_of(type)),
                "use sum, prod, min, max, avg or scaled_sum");
  if (op.op == ReduceOp::scaled_sum && is_integer(type))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: scaled_sum is defined on floating-point types, not on {}", call, name_of(type)),
                "use sum, prod, min, max or avg");
}

void check_root(std::string_view call, int root, int size) {
  if (root < 0 || root >= size)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: root {} is not a rank of this communicator", call, root),
                fmt::format("use 0 to {}", size - 1));
}

std::size_t checked_product(std::string_view call, std::size_t a, std::size_t b) {
  std::size_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} x {} elements do not fit an address space", call, a, b),
                "is the count negative, or in bytes where elements are meant?");
  return product;
}

void check_buffer(std::string_view call, const Range& range, DataType type) {
  if (range.elements == 0) return;
  if (range.data == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} is null but {} elements are needed", call, range.name, range.elements),
                "pass a buffer, or a count of 0");
  std::size_t bytes = 0;
  std::uintptr_t end = 0;
  if (__builtin_mul_overflow(range.elements, size_of(type), &bytes) ||
      __builtin_add_overflow(reinterpret_cast<std::uintptr_t>(range.data), bytes, &end) ||
      bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} of {} elements of {} does not fit an address space", call, range.name,
                            range.elements, name_of(type)),
                "is the count negative, or in bytes where elements are meant?");
}

void check_overlap(std::string_view call, const Range& input, const Range& output, DataType type,
                   std::size_t input_offset, std::size_t output_offset, std::string_view in_place_form) {
  if (input.elements == 0 || output.elements == 0) return;
  const std::size_t element = size_of(type);
  const auto in = reinterpret_cast<std::uintptr_t>(input.data);
  const auto out = reinterpret_cast<std::uintptr_t>(output.data);
  if (in + input.elements * element <= out || out + output.elements * element <= in) return;
  if (in + input_offset * element == out + output_offset * element) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} [{}, +{} bytes) and {} [{}, +{} bytes) overlap", call, input.name, input.data,
                          input.elements * element, output.name, output.data, output.elements * element),
              fmt::format("use disjoint buffers, or the in-place form: {}", in_place_form));
}

}  // namespace rondo::communicator
