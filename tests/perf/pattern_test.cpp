// The data of the benchmarks against an oracle of its own: partial results are rounded to the type after every single
// step, in several orders and groupings, and the outcome must be what the pattern expects.
#include "perf/harness/pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "perf/harness/element.hpp"
#include "perf/harness/options.hpp"

namespace rondo::perf {
namespace {

constexpr DataType floats[] = {DataType::float8_e4m3, DataType::float8_e5m2, DataType::float16,
                               DataType::bfloat16,    DataType::float32,     DataType::float64};

// The value of an encoding by its definition: sign, exponent field, mantissa field.
double decode(DataType type, std::uint64_t bits) {
  const std::map<DataType, std::pair<int, int>> widths = {
      {DataType::float8_e4m3, {4, 3}}, {DataType::float8_e5m2, {5, 2}}, {DataType::float16, {5, 10}},
      {DataType::bfloat16, {8, 7}},    {DataType::float32, {8, 23}},    {DataType::float64, {11, 52}}};
  const auto [exponent_bits, mantissa_bits] = widths.at(type);
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  const auto field = static_cast<int>((bits >> mantissa_bits) & ((std::uint64_t{1} << exponent_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits)) & 1 ? -1.0 : 1.0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int top = (1 << exponent_bits) - 1;
  if (type == DataType::float8_e4m3) {
    if (field == top && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
  } else if (field == top) {
    return mantissa == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  }
  const double fraction = std::ldexp(static_cast<double>(mantissa), -mantissa_bits);
  return sign * (field == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0 + fraction, field - bias));
}

// The nearest value of a 16- or 8-bit type, by search among all of its values; ties go to the even encoding.
class Rounder {
 public:
  explicit Rounder(DataType type) : type_(type) {
    if (size_of(type) > 2) return;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << (8 * size_of(type) - 1); ++bits) {
      const double value = decode(type, bits);
      if (std::isfinite(value)) values_.push_back(value);
    }
  }
  double operator()(double value) const {
    if (type_ == DataType::float64) return value;
    if (type_ == DataType::float32) return static_cast<float>(value);
    const double magnitude = std::fabs(value);
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
    EXPECT_NE(above, values_.end()) << "overflow: " << value;
    if (above == values_.end()) return value;
    double nearest = *above;
    if (above != values_.begin()) {
      const double below = *(above - 1);
      const double middle = (below + *above) / 2;
      const bool below_is_even = (above - 1 - values_.begin()) % 2 == 0;
      if (magnitude < middle || (magnitude == middle && below_is_even)) nearest = below;
    }
    return std::copysign(nearest, value);
  }

 private:
  DataType type_;
  std::vector<double> values_;  // index = encoding
};

double combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::prod: return a * b;
    case ReduceOp::min: return std::fmin(a, b);
    case ReduceOp::max: return std::fmax(a, b);
    default: return a + b;
  }
}

// Reduces values[order[first .. last)] as a balanced tree or as a chain, rounding after every step.
double reduce_rounded(ReduceOp op, const std::vector<double>& values, const Rounder& round, bool tree) {
  if (values.size() == 1) return values[0];
  std::vector<double> level = values;
  if (!tree) {
    double result = level[0];
    for (std::size_t i = 1; i < level.size(); ++i) result = round(combine(op, result, level[i]));
    return result;
  }
  while (level.size() > 1) {
    std::vector<double> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(round(combine(op, level[i], level[i + 1])));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = next;
  }
  return level[0];
}

std::vector<std::byte> filled(const Pattern& pattern, DataType type, int rank, std::size_t start, std::size_t count) {
  std::vector<std::byte> bytes(count * size_of(type));
  pattern.fill(rank, start, bytes);
  return bytes;
}

class FloatPattern : public testing::TestWithParam<int> {};

TEST_P(FloatPattern, EveryOrderWithRoundingAfterEachStepGivesTheExpectedValue) {
  const int ranks = GetParam();
  const std::size_t count = ranks > 32 ? 60 : 200;
  const std::size_t start = Pattern::period - 30;  // across the end of the period
  std::mt19937 random(static_cast<unsigned>(ranks));
  for (const DataType type : floats) {
    const Rounder round(type);
    for (const ReduceOp op :
         {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::avg, ReduceOp::scaled_sum}) {
      Pattern pattern(type, op, ranks);
      pattern.reseed(static_cast<std::uint64_t>(ranks));
      std::vector<std::vector<std::byte>> inputs;
      for (int rank = 0; rank < ranks; ++rank) inputs.push_back(filled(pattern, type, rank, start, count));
      std::vector<std::byte> output(count * size_of(type));
      for (int order = 0; order < 4; ++order) {
        std::vector<std::size_t> permutation(static_cast<std::size_t>(ranks));
        std::iota(permutation.begin(), permutation.end(), 0);
        if (order > 0) std::shuffle(permutation.begin(), permutation.end(), random);
        for (std::size_t i = 0; i < count; ++i) {
          std::vector<double> values;
          for (const std::size_t rank : permutation) {
            const double value = decode(type, load_bits(type, inputs[rank].data() + i * size_of(type)));
            const Reduction reduction = pattern.reduction(static_cast<int>(rank));
            EXPECT_EQ(reduction.op, op);
            values.push_back(op == ReduceOp::scaled_sum ? round(value * reduction.factor) : value);
          }
          double result = reduce_rounded(op, values, round, order % 2 == 0);
          if (op == ReduceOp::avg) result = round(result / ranks);
          store_bits(type, encode(type, result), output.data() + i * size_of(type));
        }
        ASSERT_EQ(pattern.count_wrong(-1, start, output), 0u)
            << name_of(type) << ' ' << name_of(op) << " order " << order;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, FloatPattern, testing::Values(1, 2, 3, 4, 5, 7, 8, 13, 32, 33, 64, 100, 128));

// Integers by the definition of modular arithmetic, in each C++ type itself.
template <class T>
class IntegerPattern : public testing::Test {};
using Integers = testing::Types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(IntegerPattern, Integers);

TYPED_TEST(IntegerPattern, ExpectedValuesWrapAsTheTypeDoes) {
  using T = TypeParam;
  using Unsigned = std::make_unsigned_t<T>;
  const DataType type = data_type_of<T>;
  const std::size_t count = 300;
  for (const int ranks : {1, 2, 3, 8, 33, 128}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::avg,
                              ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) {
      const Pattern pattern(type, op, ranks);
      std::vector<T> result(count);
      std::vector<T> input(count);
      for (int rank = ranks - 1; rank >= 0; --rank) {
        pattern.fill(rank, 17, std::as_writable_bytes(std::span(input)));
        for (std::size_t i = 0; i < count; ++i) {
          const T a = result[i];
          const T b = input[i];
          T& r = result[i];
          if (rank == ranks - 1) r = b;
          else if (op == ReduceOp::prod)
            r = static_cast<T>(static_cast<Unsigned>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));
          else if (op == ReduceOp::min) r = std::min(a, b);
          else if (op == ReduceOp::max) r = std::max(a, b);
          else if (op == ReduceOp::band) r = static_cast<T>(a & b);
          else if (op == ReduceOp::bor) r = static_cast<T>(a | b);
          else if (op == ReduceOp::bxor) r = static_cast<T>(a ^ b);
          else r = static_cast<T>(static_cast<Unsigned>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)));
        }
      }
      if (op == ReduceOp::avg) {
        for (T& r : result) {
          if constexpr (std::is_signed_v<T>) r = static_cast<T>(static_cast<std::int64_t>(r) / ranks);
          else r = static_cast<T>(static_cast<std::uint64_t>(r) / static_cast<std::uint64_t>(ranks));
        }
      }
      EXPECT_EQ(pattern.count_wrong(-1, 17, std::as_bytes(std::span(result))), 0u)
          << name_of(type) << ' ' << name_of(op) << ' ' << ranks << " ranks";
    }
  }
}

TEST(Pattern, EveryWrongElementIsCounted) {
  const Pattern pattern(DataType::float32, ReduceOp::sum, 4);
  std::vector<std::byte> bytes = filled(pattern, DataType::float32, 2, 5, 10000);
  EXPECT_EQ(pattern.count_wrong(2, 5, bytes), 0u);
  for (const std::size_t i : {0, 1, 4088, 9999}) bytes[i * 4] ^= std::byte{1};
  EXPECT_EQ(pattern.count_wrong(2, 5, bytes), 4u);
}

TEST(Pattern, ALostRankShowsForEveryTypeAndSum) {
  for (const DataType type : floats) {
    const Pattern pattern(type, ReduceOp::sum, 2);
    const std::vector<std::byte> only_rank_zero = filled(pattern, type, 0, 0, 1000);
    EXPECT_GT(pattern.count_wrong(-1, 0, only_rank_zero), 500u) << name_of(type);
  }
}

TEST(Pattern, DataInAWrongPlaceAndStaleDataShow) {
  Pattern pattern(DataType::bfloat16, std::nullopt, 2);
  const std::vector<std::byte> bytes = filled(pattern, DataType::bfloat16, 0, 0, 4096);
  EXPECT_GT(pattern.count_wrong(0, 4096, bytes), 4000u);
  EXPECT_GT(pattern.count_wrong(1, 0, bytes), 4000u);
  pattern.reseed(1);
  EXPECT_GT(pattern.count_wrong(0, 0, bytes), 4000u);
}

TEST(Pattern, CopiesAreComparedToTheBit) {
  const Pattern pattern(DataType::float8_e4m3, std::nullopt, 1);
  std::vector<std::byte> bytes = filled(pattern, DataType::float8_e4m3, 0, 0, Pattern::period);
  // Random bytes hold NaNs and both zeros.
  EXPECT_NE(std::find(bytes.begin(), bytes.end(), std::byte{0x7f}), bytes.end());
  const auto zero = std::find(bytes.begin(), bytes.end(), std::byte{0x00});
  ASSERT_NE(zero, bytes.end());
  EXPECT_EQ(pattern.count_wrong(0, 0, bytes), 0u);
  *zero = std::byte{0x80};
  EXPECT_EQ(pattern.count_wrong(0, 0, bytes), 1u);
}

TEST(Pattern, AverageAllowsTwoUnitsInTheLastPlaceAndSumNone) {
  const auto nudged = [](ReduceOp op, std::uint64_t units) {
    const Pattern pattern(DataType::float32, op, 1);  // of one rank: the input is the result
    std::vector<std::byte> bytes = filled(pattern, DataType::float32, 0, 0, Pattern::period);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      const std::uint64_t bits = load_bits(DataType::float32, bytes.data() + i);
      store_bits(DataType::float32, bits + units, bytes.data() + i);
      ++moved;
    }
    EXPECT_EQ(moved, Pattern::period);
    return pattern.count_wrong(-1, 0, bytes);
  };
  EXPECT_EQ(nudged(ReduceOp::avg, 2), 0u);
  EXPECT_EQ(nudged(ReduceOp::avg, 3), Pattern::period);
  EXPECT_EQ(nudged(ReduceOp::sum, 1), Pattern::period);
}

TEST(Element, EncodingInvertsDecodingForEverySmallFloat) {
  for (const DataType type : {DataType::float8_e4m3, DataType::float8_e5m2, DataType::float16, DataType::bfloat16}) {
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << (8 * size_of(type)); ++bits) {
      const double value = decode(type, bits);
      if (std::isnan(value)) continue;
      if (std::isfinite(value)) {
        ASSERT_EQ(encode(type, value), bits) << name_of(type);
      }
    }
  }
}

TEST(Element, EncodingRoundsToTheNearestEven) {
  EXPECT_EQ(encode(DataType::float8_e4m3, 17.0), encode(DataType::float8_e4m3, 16.0));
  EXPECT_EQ(encode(DataType::float8_e4m3, 19.0), encode(DataType::float8_e4m3, 20.0));
  EXPECT_EQ(encode(DataType::bfloat16, 257.0), encode(DataType::bfloat16, 256.0));
  EXPECT_EQ(encode(DataType::float16, 2051.0), encode(DataType::float16, 2052.0));
  EXPECT_EQ(encode(DataType::float16, 65504.0), 0x7bffu);
  EXPECT_EQ(encode(DataType::float16, 1e6), 0x7c00u);
  EXPECT_EQ(encode(DataType::float8_e4m3, 1e6), 0x7eu);
  EXPECT_EQ(encode(DataType::float8_e5m2, -1e6), 0xfcu);
}

TEST(Element, DistanceCountsRepresentableValuesAndRefusesNaN) {
  EXPECT_EQ(distance(DataType::float16, 0x0000, 0x8000), 0u);
  EXPECT_EQ(distance(DataType::float16, 0x0001, 0x8001), 2u);
  EXPECT_EQ(distance(DataType::float16, 0x3c00, 0x3bff), 1u);
  EXPECT_GT(distance(DataType::float16, 0x7c00, 0x7c01), 1000000u);
  EXPECT_GT(distance(DataType::float8_e4m3, 0x7e, 0x7f), 1000000u);
  EXPECT_EQ(distance(DataType::int32, 5, 5), 0u);
  EXPECT_GT(distance(DataType::int32, 5, 6), 1000000u);
}

}  // namespace
}  // namespace rondo::perf
