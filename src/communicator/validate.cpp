#include "communicator/validate.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>

namespace rondo::communicator {

void refuse_type(std::string_view call, DataType type) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: type {} is not a DataType", call, static_cast<int>(type)),
              fmt::format("use 0 (int8) to {} (float8_e5m2)", data_type_count - 1));
}

void refuse_reduction(std::string_view call, DataType type, Reduction op) {
  if (static_cast<int>(op.op) >= reduce_op_count)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: operator {} is not a ReduceOp", call, static_cast<int>(op.op)),
                fmt::format("use 0 (sum) to {} (bxor)", reduce_op_count - 1));
  if (op.op == ReduceOp::scaled_sum)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: scaled_sum is defined on floating-point types, not on {}", call, name_of(type)),
                "use sum, prod, min, max or avg");
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} is defined on integers, not on {}", call, name_of(op.op), name_of(type)),
              "use sum, prod, min, max, avg or scaled_sum");
}

void refuse_root(std::string_view call, int root, int size) {
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

void refuse_buffer(std::string_view call, const Range& range, DataType type) {
  if (range.data == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} is null but {} elements are needed", call, range.name, range.elements),
                "pass a buffer, or a count of 0");
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} of {} elements of {} does not fit an address space", call, range.name, range.elements,
                          name_of(type)),
              "is the count negative, or in bytes where elements are meant?");
}

void refuse_overlap(std::string_view call, const Range& input, const Range& output, DataType type,
                    std::string_view in_place_form) {
  const std::size_t element = size_of(type);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} [{}, +{} bytes) and {} [{}, +{} bytes) overlap", call, input.name, input.data,
                          input.elements * element, output.name, output.data, output.elements * element),
              fmt::format("use disjoint buffers, or the in-place form: {}", in_place_form));
}

}  // namespace rondo::communicator
