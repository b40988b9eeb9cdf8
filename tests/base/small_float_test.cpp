// Every pattern of every small float, and floats around every representable value and every tie.
#include "base/small_float.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace rondo::base {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

// The formats as their specifications give them, told to the tests apart from the code under test.
struct Float16 {
  using Type = float16;
  static constexpr int bits = 16, mantissa = 10, bias = 15;
  static constexpr bool has_infinity = true;
  static constexpr double largest = 65504.0, smallest = 0x1p-24;
  static Type from(float value) { return to_float16(value); }
};
struct Bfloat16 {
  using Type = bfloat16;
  static constexpr int bits = 16, mantissa = 7, bias = 127;
  static constexpr bool has_infinity = true;
  static constexpr double largest = 0x1.FEp127, smallest = 0x1p-133;
  static Type from(float value) { return to_bfloat16(value); }
};
struct E4m3 {
  using Type = float8_e4m3;
  static constexpr int bits = 8, mantissa = 3, bias = 7;
  static constexpr bool has_infinity = false;
  static constexpr double largest = 448.0, smallest = 0x1p-9;
  static Type from(float value) { return to_float8_e4m3(value); }
};
struct E5m2 {
  using Type = float8_e5m2;
  static constexpr int bits = 8, mantissa = 2, bias = 15;
  static constexpr bool has_infinity = true;
  static constexpr double largest = 57344.0, smallest = 0x1p-16;
  static Type from(float value) { return to_float8_e5m2(value); }
};

template <class Format>
class SmallFloat : public testing::Test {
 public:
  using Bits = decltype(Format::Type::bits);
  static constexpr unsigned sign_bit = 1U << (Format::bits - 1);
  static constexpr unsigned exponent_limit = sign_bit >> Format::mantissa;

  // The value of a non-negative pattern by the definition of the format; infinity and NaN too.
  static double value_of(unsigned magnitude) {
    const unsigned exponent = magnitude >> Format::mantissa;
    const double fraction = std::ldexp(magnitude % (1U << Format::mantissa), -Format::mantissa);
    if (Format::has_infinity && exponent == exponent_limit - 1) return fraction == 0 ? HUGE_VAL : std::nan("");
    if (!Format::has_infinity && magnitude == sign_bit - 1) return std::nan("");
    if (exponent == 0) return std::ldexp(fraction, 1 - Format::bias);
    return std::ldexp(1 + fraction, static_cast<int>(exponent) - Format::bias);
  }

  static std::vector<double> finite_values() {
    std::vector<double> values;
    for (unsigned m = 0; m < sign_bit && std::isfinite(value_of(m)); ++m) values.push_back(value_of(m));
    return values;
  }

  // The pattern nearest to `value`, by search in finite_values(). One step beyond the largest stands for overflow.
  static unsigned nearest(float value, const std::vector<double>& values) {
    const unsigned sign = std::signbit(value) ? sign_bit : 0;
    const double magnitude = std::fabs(static_cast<double>(value));
    const unsigned last = static_cast<unsigned>(values.size() - 1);
    const double beyond = 2 * values[last] - values[last - 1];
    const auto above =
        static_cast<unsigned>(std::lower_bound(values.begin(), values.end(), magnitude) - values.begin());
    unsigned best = above;
    if (magnitude >= beyond) {
      best = last + 1;
    } else if (above > 0) {
      const double up = (above > last ? beyond : values[above]) - magnitude, down = magnitude - values[above - 1];
      best = down < up || (down == up && (above - 1) % 2 == 0) ? above - 1 : above;
    }
    return sign | (best > last && !Format::has_infinity ? last : best);
  }
};

using Formats = testing::Types<Float16, Bfloat16, E4m3, E5m2>;
TYPED_TEST_SUITE(SmallFloat, Formats);

TYPED_TEST(SmallFloat, EveryPatternHasTheValueOfItsDefinition) {
  for (unsigned m = 0; m < this->sign_bit; ++m) {
    const double expected = this->value_of(m);
    const float positive = to_float(typename TypeParam::Type{static_cast<typename TestFixture::Bits>(m)});
    const float negative =
        to_float(typename TypeParam::Type{static_cast<typename TestFixture::Bits>(m | this->sign_bit)});
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(positive) && std::isnan(negative)) << m;
    } else {
      ASSERT_EQ(positive, expected) << m;
      ASSERT_EQ(negative, -expected) << m;
      ASSERT_TRUE(!std::signbit(positive) && std::signbit(negative)) << m;
    }
  }
}

TYPED_TEST(SmallFloat, LimitsAreThoseOfTheSpecification) {
  const std::vector<double> values = this->finite_values();
  EXPECT_EQ(values.back(), TypeParam::largest);
  EXPECT_EQ(values[1], TypeParam::smallest);
}

TYPED_TEST(SmallFloat, EveryPatternSurvivesTheRoundTrip) {
  for (unsigned pattern = 0; pattern < 2 * this->sign_bit; ++pattern) {
    const float value = to_float(typename TypeParam::Type{static_cast<typename TestFixture::Bits>(pattern)});
    const auto back = TypeParam::from(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(to_float(back))) << pattern;
    } else if (std::isinf(value) && !TypeParam::has_infinity) {
      FAIL() << pattern << " is infinite in a format that has no infinity";
    } else {
      ASSERT_EQ(back.bits, pattern);
    }
  }
}

TYPED_TEST(SmallFloat, RoundsToTheNearestAndTiesToEven) {
  const std::vector<double> values = this->finite_values();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const auto low = static_cast<float>(values[i]), high = static_cast<float>(values[i + 1]);
    const auto tie = static_cast<float>((values[i] + values[i + 1]) / 2);
    for (const float point : {low, std::nextafter(low, infinity), std::nextafter(tie, 0.0F), tie,
                              std::nextafter(tie, infinity), std::nextafter(high, 0.0F), high}) {
      ASSERT_EQ(TypeParam::from(point).bits, this->nearest(point, values)) << point;
      ASSERT_EQ(TypeParam::from(-point).bits, this->nearest(-point, values)) << -point;
    }
  }
}

TYPED_TEST(SmallFloat, OverflowsFromHalfAStepAboveTheLargest) {
  const std::vector<double> values = this->finite_values();
  const double step = values.back() - values[values.size() - 2];
  const double tie = values.back() + step / 2;
  std::vector<float> points = {std::numeric_limits<float>::max()};
  if (tie < static_cast<double>(points[0])) {
    points.push_back(static_cast<float>(tie));
    points.push_back(std::nextafter(static_cast<float>(tie), infinity));
    points.push_back(std::nextafter(static_cast<float>(tie), 0.0F));
    points.push_back(static_cast<float>(values.back() * 2));
    points.push_back(1e30F);
  }
  for (const float point : points) {
    ASSERT_EQ(TypeParam::from(point).bits, this->nearest(point, values)) << point;
    ASSERT_EQ(TypeParam::from(-point).bits, this->nearest(-point, values)) << -point;
  }
  const float from_infinity = to_float(TypeParam::from(infinity));
  if (TypeParam::has_infinity) {
    EXPECT_EQ(from_infinity, infinity);
  } else {
    EXPECT_EQ(from_infinity, 448.0F);
    EXPECT_EQ(to_float(TypeParam::from(-infinity)), -448.0F);
  }
}

TYPED_TEST(SmallFloat, TinyValuesBecomeSignedZero) {
  for (const float tiny :
       {0.0F, std::numeric_limits<float>::denorm_min(), static_cast<float>(TypeParam::smallest / 4)}) {
    EXPECT_EQ(TypeParam::from(tiny).bits, 0U);
    EXPECT_EQ(TypeParam::from(-tiny).bits, this->sign_bit);
  }
}

TYPED_TEST(SmallFloat, NanStaysNanWhateverItsPayload) {
  for (const std::uint32_t payload : {0x7FC00000U, 0x7F800001U, 0x7F80FFFFU, 0x7FFFFFFFU, 0x7F810000U}) {
    EXPECT_TRUE(std::isnan(to_float(TypeParam::from(std::bit_cast<float>(payload))))) << payload;
    EXPECT_TRUE(std::isnan(to_float(TypeParam::from(std::bit_cast<float>(payload | 0x80000000U))))) << payload;
  }
  EXPECT_TRUE(std::isnan(to_float(TypeParam::from(quiet_nan))));
}

#if defined(__FLT16_MAX__) && !defined(__clang__)
TEST(SmallFloat16, AgreesWithTheCompilersHalfPrecision) {
  for (std::uint32_t bits = 0; bits < 0x7F800000U; bits += 0x1373U) {
    const float value = std::bit_cast<float>(bits);
    __extension__ const auto half = static_cast<_Float16>(value);
    ASSERT_EQ(to_float16(value).bits, std::bit_cast<std::uint16_t>(half)) << value;
    ASSERT_EQ(to_float16(-value).bits, std::bit_cast<std::uint16_t>(half) | 0x8000U) << value;
  }
}
#endif

}  // namespace
}  // namespace rondo::base
