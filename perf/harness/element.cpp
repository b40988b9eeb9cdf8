#include "perf/harness/element.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace rondo::perf {
namespace {

// Sign, exponent and mantissa bits of a floating-point type. `top` is the encoding, without sign, of its infinity, or
// of its largest value where it has none.
struct Format {
  int bits;
  int mantissa;
  int bias;
  std::uint64_t top;
};

Format format_of(DataType type) {
  switch (type) {
    case DataType::float8_e4m3: return {8, 3, 7, 0x7e};
    case DataType::float8_e5m2: return {8, 2, 15, 0x7c};
    case DataType::float16: return {16, 10, 15, 0x7c00};
    case DataType::bfloat16: return {16, 7, 127, 0x7f80};
    case DataType::float32: return {32, 23, 127, 0x7f800000};
    default: return {64, 52, 1023, 0x7ff0000000000000};
  }
}

std::uint64_t sign_mask(const Format& format) { return std::uint64_t{1} << (format.bits - 1); }

std::uint64_t encode_small(const Format& format, double value) {
  const std::uint64_t sign = std::signbit(value) ? sign_mask(format) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  // Below the smallest normal number the spacing stays that of exponent 1 - bias.
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  // Units of the last place; a carry out of the mantissa lands in the exponent field, as it should.
  const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent));
  const std::uint64_t field = static_cast<std::uint64_t>(exponent + format.bias - 1) << format.mantissa;
  const std::uint64_t bits = field + static_cast<std::uint64_t>(units);
  return sign | std::min(bits, format.top);
}

}  // namespace

std::uint64_t encode(DataType type, double value) {
  if (type == DataType::float64) return std::bit_cast<std::uint64_t>(value);
  if (type == DataType::float32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (!is_integer(type)) return encode_small(format_of(type), value);
  const auto whole =
      value < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) : static_cast<std::uint64_t>(value);
  const std::size_t bits = 8 * size_of(type);
  return bits == 64 ? whole : whole & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t load_bits(DataType type, const std::byte* element) {
  std::uint64_t bits = 0;
  static_assert(std::endian::native == std::endian::little, "the low bytes come first");
  std::memcpy(&bits, element, size_of(type));
  return bits;
}

void store_bits(DataType type, std::uint64_t bits, std::byte* element) { std::memcpy(element, &bits, size_of(type)); }

std::uint64_t distance(DataType type, std::uint64_t a, std::uint64_t b) {
  if (is_integer(type)) return a == b ? 0 : std::numeric_limits<std::uint64_t>::max();
  const Format format = format_of(type);
  const std::uint64_t sign = sign_mask(format);
  const std::uint64_t a_magnitude = a & (sign - 1);
  const std::uint64_t b_magnitude = b & (sign - 1);
  if (a_magnitude > format.top || b_magnitude > format.top) return std::numeric_limits<std::uint64_t>::max();
  if ((a & sign) != (b & sign)) return a_magnitude + b_magnitude;
  return a_magnitude > b_magnitude ? a_magnitude - b_magnitude : b_magnitude - a_magnitude;
}

std::int64_t exact_limit(DataType type) { return std::int64_t{1} << (format_of(type).mantissa + 1); }

}  // namespace rondo::perf
