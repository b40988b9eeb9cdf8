// The binary operators on vectors, compiled once for every instruction set (no include guard of the usual kind).
//
// Everything here is pure and inlined into the kernels.
#if defined(RONDO_EXECUTOR_REDUCE_OPERATORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_EXECUTOR_REDUCE_OPERATORS_INL
#undef RONDO_EXECUTOR_REDUCE_OPERATORS_INL
#else
#define RONDO_EXECUTOR_REDUCE_OPERATORS_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::executor {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Sum {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    const hn::DFromV<V> d;
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::Add(a, b);
    } else {
      const hn::RebindToUnsigned<decltype(d)> du;  // signed overflow must wrap in the scalar target too
      return hn::BitCast(d, hn::Add(hn::BitCast(du, a), hn::BitCast(du, b)));
    }
  }
};

// Integers: unsigned types only, whose low bits are those of the signed product.
struct Prod {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(hn::TFromV<V>) == 1) {
      // No instruction set multiplies bytes: even and odd bytes as 16-bit products, of which the low halves count.
      const hn::DFromV<V> d;
      const hn::RepartitionToWide<decltype(d)> dw;
      const auto even = hn::Mul(hn::BitCast(dw, a), hn::BitCast(dw, b));
      const auto odd = hn::Mul(hn::ShiftRight<8>(hn::BitCast(dw, a)), hn::ShiftRight<8>(hn::BitCast(dw, b)));
      return hn::BitCast(d, hn::Or(hn::And(even, hn::Set(dw, std::uint16_t{0xFF})), hn::ShiftLeft<8>(odd)));
    } else {
      return hn::Mul(a, b);
    }
#else
    return hn::Mul(a, b);
#endif
  }
};

// NaN if either is NaN. Vector minimum instructions of x86 return the second operand then, so only a NaN in the first
// is lost; other machines differ, so both are looked at.
template <class V>
HWY_INLINE V keep_nan(V a, V b, V result) {
#if !HWY_ARCH_X86 || HWY_TARGET == HWY_SCALAR
  result = hn::IfThenElse(hn::IsNaN(b), b, result);
#else
  (void)b;
#endif
  return hn::IfThenElse(hn::IsNaN(a), a, result);
}

struct Min {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return keep_nan(a, b, hn::Min(a, b));
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Max {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return keep_nan(a, b, hn::Max(a, b));
    } else {
      return hn::Max(a, b);
    }
  }
};

struct BitAnd {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::And(a, b);
  }
};
struct BitOr {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Or(a, b);
  }
};
struct BitXor {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Xor(a, b);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace rondo::executor
HWY_AFTER_NAMESPACE();

#endif
