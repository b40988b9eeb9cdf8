// What a reduction should give, one element at a time: exact integers, and floats whose every step is computed in
// double and rounded to float32 (for one +, * or / that equals rounding once). Independent of the vector code.
#pragma once

#include <rondo/types.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <type_traits>

#include "base/small_float.hpp"

namespace rondo::executor::oracle {

// What scales and divides: as in ReduceArguments.
struct Terms {
  std::span<const std::uint8_t> scaled;  // empty: none
  double factor = 1;
  std::uint32_t divisor = 1;
};

template <class T>
struct Integer {
  using Storage = T;
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr DataType type = data_type_of<T>;

  static T combine(ReduceOp op, std::span<const T> values, const Terms& terms) {
    // Modulo 2^64, which the narrower types wrap like.
    auto wide = static_cast<std::uint64_t>(values[0]);
    T low = values[0], high = values[0];
    for (const T next : values.subspan(1)) {
      const auto w = static_cast<std::uint64_t>(next);
      switch (op) {
        case ReduceOp::prod: wide *= w; break;
        case ReduceOp::band: wide &= w; break;
        case ReduceOp::bor: wide |= w; break;
        case ReduceOp::bxor: wide ^= w; break;
        default: wide += w;
      }
      low = std::min(low, next);
      high = std::max(high, next);
    }
    if (op == ReduceOp::min) return low;
    if (op == ReduceOp::max) return high;
    const auto wrapped = static_cast<T>(wide);
    if (op != ReduceOp::avg) return wrapped;
    if constexpr (std::is_signed_v<T>) {
      // Of the magnitudes, so that the direction of rounding is plain.
      const std::uint64_t magnitude =
          wrapped < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(wrapped) : static_cast<std::uint64_t>(wrapped);
      const std::uint64_t quotient = magnitude / terms.divisor;
      return static_cast<T>(wrapped < 0 ? std::uint64_t{0} - quotient : quotient);
    } else {
      return static_cast<T>(static_cast<std::uint64_t>(wrapped) / terms.divisor);
    }
  }
  static bool same(ReduceOp, T a, T b) { return a == b; }
  static T sample(std::mt19937_64& random) {
    const std::uint64_t bits = random();
    // Small, extreme and arbitrary values.
    switch (random() % 8) {
      case 0: return static_cast<T>(bits % 5);
      case 1: return std::numeric_limits<T>::min();
      case 2: return std::numeric_limits<T>::max();
      default: return static_cast<T>(bits);
    }
  }
};

// Conversions of the storage type; identity for the wide ones.
inline float widen(float value) { return value; }
inline double widen(double value) { return value; }
template <class T>
float widen(T value) {
  return base::to_float(value);
}
template <class T>
T narrow(float value) {
  if constexpr (std::is_same_v<T, float16>) {
    return base::to_float16(value);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return base::to_bfloat16(value);
  } else if constexpr (std::is_same_v<T, float8_e4m3>) {
    return base::to_float8_e4m3(value);
  } else {
    return base::to_float8_e5m2(value);
  }
}

template <class T>
struct Float {
  using Storage = T;
  using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr DataType type = data_type_of<T>;

  static Compute round(double value) { return static_cast<Compute>(value); }

  static T combine(ReduceOp op, std::span<const T> values, const Terms& terms) {
    Compute result{};
    for (std::size_t s = 0; s < values.size(); ++s) {
      Compute next = widen(values[s]);
      if (op == ReduceOp::scaled_sum && !terms.scaled.empty() && terms.scaled[s] != 0) {
        next = round(double{next} * double{round(terms.factor)});
      }
      if (s == 0) {
        result = next;
      } else if (op == ReduceOp::prod) {
        result = round(double{result} * double{next});
      } else if (op == ReduceOp::min || op == ReduceOp::max) {
        if (std::isnan(result) || std::isnan(next)) {
          result = std::numeric_limits<Compute>::quiet_NaN();
        } else if (op == ReduceOp::min ? next < result : next > result) {
          result = next;
        }
      } else {
        result = round(double{result} + double{next});
      }
    }
    if (op == ReduceOp::avg) result = round(double{result} / double{round(terms.divisor)});
    if constexpr (std::is_same_v<T, Compute>) {
      return result;
    } else {
      return narrow<T>(result);
    }
  }
  // Bit for bit, but any NaN is as good as another, and of two zeros min and max may take either.
  static bool same(ReduceOp op, T a, T b) {
    const Compute x = widen(a), y = widen(b);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (x == 0 && y == 0 && (op == ReduceOp::min || op == ReduceOp::max)) return true;
    return x == y && std::signbit(x) == std::signbit(y);
  }
  static T sample(std::mt19937_64& random) {
    const std::uint64_t bits = random();
    if (random() % 8 == 0) {  // any pattern: NaN, infinities, subnormals, the extremes
      if constexpr (std::is_same_v<T, double>) {
        return std::bit_cast<double>(bits);
      } else if constexpr (std::is_same_v<T, float>) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      } else {
        return T{static_cast<decltype(T::bits)>(bits)};
      }
    }
    const double value = std::uniform_real_distribution<double>(-8, 8)(random);
    if constexpr (std::is_same_v<T, Compute>) {
      return static_cast<T>(value);
    } else {
      return narrow<T>(static_cast<float>(value));
    }
  }
};

}  // namespace rondo::executor::oracle
