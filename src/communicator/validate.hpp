// Judging a call's arguments before anything starts. All throw Error(invalid_argument) with value, constraint and hint.
#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <string_view>

namespace rondo::communicator {

struct Range {
  std::string_view name;
  const void* data = nullptr;
  std::size_t elements = 0;
};

void check_type(std::string_view call, DataType type);
void check_reduction(std::string_view call, DataType type, Reduction op);
void check_root(std::string_view call, int root, int size);
// elements * size_of(type) must not overflow; null only with zero elements.
void check_buffer(std::string_view call, const Range& range, DataType type);
// Disjoint, unless output begins exactly at input + in_place_elements (the documented in-place form).
void check_overlap(std::string_view call, const Range& input, const Range& output, DataType type,
                   std::size_t input_offset, std::size_t output_offset, std::string_view in_place_form);
// a * b without overflow.
std::size_t checked_product(std::string_view call, std::size_t a, std::size_t b);

}  // namespace rondo::communicator
