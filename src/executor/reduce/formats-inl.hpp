// How elements of a type become vectors to compute with, and back; compiled once for every instruction set.
//
// A format says: Storage (one element in memory), Raw (a full vector of them), Accumulator (the same elements as
// `parts` vectors of the computing type), expand() and contract() between the two, and divide(). The small floats are
// not widened by shuffles: a 32-bit lane of Raw holds 2 or 4 elements, and part k takes the k-th of every lane, so that
// shifts and masks suffice on every instruction set.
#if defined(RONDO_EXECUTOR_REDUCE_FORMATS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_EXECUTOR_REDUCE_FORMATS_INL
#undef RONDO_EXECUTOR_REDUCE_FORMATS_INL
#else
#define RONDO_EXECUTOR_REDUCE_FORMATS_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::executor {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V, int count>
struct Parts {
  V part[count];
};

HWY_INLINE bool is_power_of_two(std::uint32_t value) { return (value & (value - 1)) == 0; }

// Exact quotients, rounded towards zero; divisor >= 2.
template <class T>
HWY_NOINLINE void divide_lanes(T* HWY_RESTRICT lanes, std::size_t count, std::uint32_t divisor) {
  if constexpr (sizeof(T) == 1) {
    // floor(x / d) = (x * (65536 / d + 1)) >> 16 for x, d <= 255: the excess of the factor is at most d / 65536, and
    // x * d < 65536.
    const std::uint32_t reciprocal = divisor > 255 ? 0 : 65536 / divisor + 1;
    for (std::size_t i = 0; i < count; ++i) {
      const int value = static_cast<int>(lanes[i]);
      const std::uint32_t magnitude = static_cast<std::uint32_t>(value < 0 ? -value : value);
      const int quotient = static_cast<int>((magnitude * reciprocal) >> 16);
      lanes[i] = static_cast<T>(value < 0 ? -quotient : quotient);
    }
  } else if constexpr (sizeof(T) == 4) {
    // A double quotient of 32-bit integers never rounds up to an integer that the exact one does not reach.
    const double d = divisor;
    for (std::size_t i = 0; i < count; ++i) lanes[i] = static_cast<T>(static_cast<double>(lanes[i]) / d);
  } else if (is_power_of_two(divisor)) {
    const int shift = static_cast<int>(hwy::Num0BitsBelowLS1Bit_Nonzero32(divisor));
    for (std::size_t i = 0; i < count; ++i) {
      const T to_zero = hwy::IsSigned<T>() && lanes[i] < 0 ? static_cast<T>(divisor - 1) : T{0};
      lanes[i] = static_cast<T>((lanes[i] + to_zero) >> shift);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) lanes[i] = static_cast<T>(lanes[i] / static_cast<T>(divisor));
  }
}

// Floats: by a power of two, as most numbers of ranks are, the product with the reciprocal is the same and far cheaper.
template <class V>
HWY_INLINE V divide_vector(V value, std::uint32_t divisor) {
  using T = hn::TFromV<V>;
  const hn::DFromV<V> d;
  if (is_power_of_two(divisor)) return hn::Mul(value, hn::Set(d, T{1} / static_cast<T>(divisor)));
  return hn::Div(value, hn::Set(d, static_cast<T>(divisor)));
}

// Types computed in as they are stored.
template <class T>
struct Native {
  using Storage = T;
  using Lane = T;
  static constexpr int parts = 1;
  using Tag = hn::ScalableTag<T>;
  using Raw = hn::Vec<Tag>;
  using Vector = Raw;
  using Accumulator = Parts<Vector, parts>;

  static HWY_INLINE Accumulator expand(Raw raw) { return {{raw}}; }
  static HWY_INLINE Raw contract(Accumulator value) { return value.part[0]; }
  static HWY_INLINE void divide(Accumulator& value, std::uint32_t divisor) {
    if constexpr (hwy::IsFloat<T>()) {
      value.part[0] = divide_vector(value.part[0], divisor);
    } else {
      const Tag d;
      HWY_ALIGN T lanes[HWY_LANES(T)];
      hn::Store(value.part[0], d, lanes);
      divide_lanes(lanes, HWY_LANES(T), divisor);
      value.part[0] = hn::Load(d, lanes);
    }
  }
};

// What all formats computed in float32 share.
template <class StorageT>
struct InFloat {
  using Storage = StorageT;
  using Lane = float;
  using Tag = hn::ScalableTag<Storage>;
  using Raw = hn::Vec<Tag>;
  using FloatTag = hn::ScalableTag<float>;
  using IntTag = hn::ScalableTag<std::int32_t>;
  using Vector = hn::Vec<FloatTag>;
  using Bits = hn::Vec<IntTag>;
#if HWY_TARGET == HWY_SCALAR
  static constexpr int parts = 1;  // a vector is one element
#else
  static constexpr int parts = 4 / sizeof(Storage);
#endif
  using Accumulator = Parts<Vector, parts>;

  static HWY_INLINE Bits lanes_of(Raw raw) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(IntTag(), static_cast<std::int32_t>(hn::GetLane(raw)));
#else
    return hn::BitCast(IntTag(), raw);
#endif
  }
  static HWY_INLINE Raw raw_of(Bits bits) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(Tag(), static_cast<Storage>(hn::GetLane(bits)));
#else
    return hn::BitCast(Tag(), bits);
#endif
  }
  static HWY_INLINE void divide(Accumulator& value, std::uint32_t divisor) {
    for (int k = 0; k < parts; ++k) value.part[k] = divide_vector(value.part[k], divisor);
  }
};

// The upper half of a float32.
struct Bfloat16 : InFloat<std::uint16_t> {
  static HWY_INLINE Accumulator expand(Raw raw) {
    const Bits lanes = lanes_of(raw);
    Accumulator value;
    value.part[0] = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(lanes));
#if HWY_TARGET != HWY_SCALAR
    const IntTag di;
    value.part[1] = hn::BitCast(FloatTag(), hn::And(lanes, hn::Set(di, upper_half)));
#endif
    return value;
  }
  static HWY_INLINE Raw contract(Accumulator value) {
    const hn::RebindToUnsigned<IntTag> du;
    const IntTag di;
    const auto low = hn::BitCast(di, hn::ShiftRight<16>(hn::BitCast(du, rounded(value.part[0]))));
#if HWY_TARGET == HWY_SCALAR
    return raw_of(low);
#else
    return raw_of(hn::Or(low, hn::And(rounded(value.part[1]), hn::Set(di, upper_half))));
#endif
  }

 private:
  static constexpr std::int32_t upper_half = static_cast<std::int32_t>(0xFFFF0000U);

  // The result is in the upper half; the lower half is what is left of the rounding.
  static HWY_INLINE Bits rounded(Vector value) {
    const IntTag di;
    const hn::RebindToUnsigned<IntTag> du;
    const auto bits = hn::BitCast(du, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
    const auto up = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFFU)), odd);  // ties go to the even neighbour
    const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000U));
    return hn::BitCast(di, hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, up));
  }
};

// A float with `exponent` and `mantissa` bits, IEEE-like, or (finite) without infinities and with a single NaN
// magnitude.
template <class StorageT, int exponent, int mantissa, bool finite>
struct SmallFloat : InFloat<StorageT> {
  using Base = InFloat<StorageT>;
  using Base::parts;
  using typename Base::Accumulator;
  using typename Base::Bits;
  using typename Base::FloatTag;
  using typename Base::IntTag;
  using typename Base::Raw;
  using typename Base::Vector;

  static HWY_INLINE Accumulator expand(Raw raw) {
    const Bits lanes = Base::lanes_of(raw);
    Accumulator value;
    value.part[0] = to_float(lanes);
    if constexpr (parts > 1) value.part[1] = to_float(hn::ShiftRight<total>(lanes));
    if constexpr (parts > 2) {
      value.part[2] = to_float(hn::ShiftRight<2 * total % 32>(lanes));
      value.part[3] = to_float(hn::ShiftRight<3 * total % 32>(lanes));
    }
    return value;
  }
  static HWY_INLINE Raw contract(Accumulator value) {
    Bits lanes = from_float(value.part[0]);
    if constexpr (parts > 1) lanes = hn::Or(lanes, hn::ShiftLeft<total>(from_float(value.part[1])));
    if constexpr (parts > 2) {
      lanes = hn::Or(lanes, hn::ShiftLeft<2 * total % 32>(from_float(value.part[2])));
      lanes = hn::Or(lanes, hn::ShiftLeft<3 * total % 32>(from_float(value.part[3])));
    }
    return Base::raw_of(lanes);
  }

 private:
  static constexpr int total = 1 + exponent + mantissa;
  static constexpr int bias = (1 << (exponent - 1)) - 1;
  static constexpr int dropped = 23 - mantissa;
  static constexpr std::int32_t sign_bit = 1 << (total - 1);
  static constexpr std::int32_t infinity = ((1 << exponent) - 1) << mantissa;
  static constexpr std::int32_t largest = finite ? sign_bit - 2 : infinity;  // what overflow becomes
  static constexpr std::int32_t nan = finite ? sign_bit - 1 : infinity | 1 << (mantissa - 1);
  static constexpr std::int32_t rebias = (127 - bias) << 23;
  static constexpr std::int32_t smallest_normal = (128 - bias) << 23;  // as float32

  // The element in the low bits; whatever is above is ignored.
  static HWY_INLINE Vector to_float(Bits element) {
    const IntTag di;
    const FloatTag df;
    const Bits magnitude = hn::And(element, hn::Set(di, sign_bit - 1));
    const Bits sign = hn::ShiftLeft<32 - total>(hn::And(element, hn::Set(di, sign_bit)));
    const Bits shifted = hn::ShiftLeft<dropped>(magnitude);
    Bits result = hn::Add(shifted, hn::Set(di, rebias));
    // Subnormal: (1.m - 1.0) * 2^(1 - bias), exactly.
    const Vector one = hn::BitCast(df, hn::Set(di, smallest_normal));
    const Vector small = hn::Sub(hn::BitCast(df, hn::Add(shifted, hn::Set(di, smallest_normal))), one);
    result = hn::IfThenElse(hn::Lt(shifted, hn::Set(di, 1 << 23)), hn::BitCast(di, small), result);
    if constexpr (finite) {
      result = hn::IfThenElse(hn::Eq(magnitude, hn::Set(di, nan)), hn::Set(di, 0x7FC00000), result);
    } else {
      const auto special = hn::Gt(magnitude, hn::Set(di, infinity - 1));
      result = hn::Add(result, hn::IfThenElseZero(special, hn::Set(di, rebias)));
    }
    return hn::BitCast(df, hn::Or(result, sign));
  }

  // To nearest, ties to even; all bits above the element are zero.
  static HWY_INLINE Bits from_float(Vector value) {
    const IntTag di;
    const FloatTag df;
    const Bits bits = hn::BitCast(di, value);
    const Bits magnitude = hn::And(bits, hn::Set(di, 0x7FFFFFFF));
    const Bits sign = hn::And(hn::ShiftRight<32 - total>(bits), hn::Set(di, sign_bit));
    const Bits odd = hn::And(hn::ShiftRight<dropped>(magnitude), hn::Set(di, 1));
    const Bits half = hn::Set(di, (1 << (dropped - 1)) - 1 - rebias);
    Bits result = hn::ShiftRight<dropped>(hn::Add(hn::Add(magnitude, half), odd));
    // Below the smallest normal: the sum with a power of two whose last place is the smallest subnormal rounds.
    const Bits power = hn::Set(di, (127 + 23 + 1 - bias - mantissa) << 23);
    const Bits sum = hn::BitCast(di, hn::Add(hn::BitCast(df, magnitude), hn::BitCast(df, power)));
    result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, smallest_normal)), hn::Sub(sum, power), result);
    result = hn::Min(result, hn::Set(di, largest));
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7F800000)), hn::Set(di, nan), result);
    return hn::Or(result, sign);
  }
};

using Float8E4m3 = SmallFloat<std::uint8_t, 4, 3, true>;
using Float8E5m2 = SmallFloat<std::uint8_t, 5, 2, false>;

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// With the conversion instructions (F16C), which take half a vector of elements each.
struct Float16 : InFloat<std::uint16_t> {
  static HWY_INLINE Accumulator expand(Raw raw) {
    const Half half;
    const HalfFloat16 f16;
    return {{hn::PromoteTo(FloatTag(), hn::BitCast(f16, hn::LowerHalf(half, raw))),
             hn::PromoteTo(FloatTag(), hn::BitCast(f16, hn::UpperHalf(half, raw)))}};
  }
  static HWY_INLINE Raw contract(Accumulator value) {
    const Half half;
    const HalfFloat16 f16;
    return hn::Combine(Tag(), hn::BitCast(half, hn::DemoteTo(f16, value.part[1])),
                       hn::BitCast(half, hn::DemoteTo(f16, value.part[0])));
  }

 private:
  using Half = hn::Half<Tag>;
  using HalfFloat16 = hn::Rebind<hwy::float16_t, FloatTag>;
};
#else
using Float16 = SmallFloat<std::uint16_t, 5, 10, false>;
#endif

}  // namespace HWY_NAMESPACE
}  // namespace rondo::executor
HWY_AFTER_NAMESPACE();

#endif
