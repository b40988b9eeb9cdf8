#include "base/small_float.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rondo::base {

namespace {

// A sign, `exponent` bits and `mantissa` bits. `finite`: no infinities, and the only NaN is all ones.
template <int exponent, int mantissa, bool finite>
struct Layout {
  static constexpr int bias = (1 << (exponent - 1)) - 1;
  static constexpr std::uint32_t sign_bit = 1U << (exponent + mantissa);
  static constexpr std::uint32_t infinity = ((1U << exponent) - 1) << mantissa;
  static constexpr std::uint32_t overflow = finite ? sign_bit - 2 : infinity;
  static constexpr std::uint32_t nan = finite ? sign_bit - 1 : infinity | 1U << (mantissa - 1);

  static float decode(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & (sign_bit - 1);
    const int power = static_cast<int>(magnitude >> mantissa);
    const std::uint32_t fraction = magnitude & ((1U << mantissa) - 1);
    float value = 0;
    if (finite ? magnitude == nan : magnitude > infinity) {
      value = std::numeric_limits<float>::quiet_NaN();
    } else if (!finite && magnitude == infinity) {
      value = std::numeric_limits<float>::infinity();
    } else if (power == 0) {
      value = std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa);
    } else {
      value = std::ldexp(static_cast<float>(fraction | 1U << mantissa), power - bias - mantissa);
    }
    return (bits & sign_bit) != 0 ? -value : value;
  }

  static std::uint32_t encode(float value) {
    const std::uint32_t sign = std::signbit(value) ? sign_bit : 0;
    if (std::isnan(value)) return sign | nan;
    if (std::isinf(value)) return sign | overflow;
    const std::uint32_t source = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
    // |value| = significand * 2^(power - 150)
    int power = static_cast<int>(source >> 23);
    std::uint32_t significand = source & 0x7FFFFFU;
    if (power == 0) {
      power = 1;
    } else {
      significand |= 1U << 23;
    }
    int target = power - 127 + bias;  // the exponent field, were it wide enough
    int dropped = 23 - mantissa;
    if (target < 1) {
      dropped += 1 - target;
      target = 1;
    }
    if (target >= 1 << exponent) return sign | overflow;
    if (dropped > 25) return sign;  // less than half of the smallest subnormal
    std::uint32_t kept = significand >> dropped;
    const std::uint32_t rest = significand & ((1U << dropped) - 1);
    const std::uint32_t half = 1U << (dropped - 1);
    if (rest > half || (rest == half && (kept & 1U) != 0)) ++kept;
    // The leading one of a normal significand, and any carry of the rounding, add to the exponent field.
    const std::uint32_t magnitude = (static_cast<std::uint32_t>(target - 1) << mantissa) + kept;
    return sign | (magnitude < overflow ? magnitude : overflow);
  }
};

using Float16Layout = Layout<5, 10, false>;
using E4m3Layout = Layout<4, 3, true>;
using E5m2Layout = Layout<5, 2, false>;

}  // namespace

float to_float(float16 value) { return Float16Layout::decode(value.bits); }
float to_float(bfloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
float to_float(float8_e4m3 value) { return E4m3Layout::decode(value.bits); }
float to_float(float8_e5m2 value) { return E5m2Layout::decode(value.bits); }

float16 to_float16(float value) { return {static_cast<std::uint16_t>(Float16Layout::encode(value))}; }

bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>(bits >> 16 | 0x40U)};  // stays NaN when its payload is cut
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16)};
}

float8_e4m3 to_float8_e4m3(float value) { return {static_cast<std::uint8_t>(E4m3Layout::encode(value))}; }
float8_e5m2 to_float8_e5m2(float value) { return {static_cast<std::uint8_t>(E5m2Layout::encode(value))}; }

}  // namespace rondo::base
