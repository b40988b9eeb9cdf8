// What reduce.hpp promises beyond the definition of each operator: the limits of the small floats, no access outside
// the buffers, the pairs of type and operator that exist.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/small_float.hpp"
#include "executor/reduce/reduce.hpp"
#include "instruction_sets.hpp"

namespace rondo::executor {
namespace {

ReduceKernel kernel_of(const InstructionSet& set, DataType type, ReduceOp op) {
  return set.table.kernels[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)];
}

// Reduces `inputs` into one new vector.
template <class T>
std::vector<T> reduced(const InstructionSet& set, ReduceOp op, const std::vector<std::vector<T>>& inputs,
                       ReduceArguments arguments = {}) {
  std::vector<T> output(inputs[0].size());
  std::vector<const void*> sources;
  for (const auto& input : inputs) sources.push_back(input.data());
  void* destination = output.data();
  arguments.sources = sources.data();
  arguments.source_count = sources.size();
  arguments.destinations = &destination;
  arguments.destination_count = 1;
  arguments.count = output.size();
  kernel_of(set, data_type_of<T>, op)(arguments);
  return output;
}

TEST(ReduceKernel, ExistsForEveryPairThatMakesSense) {
  for (int t = 0; t < data_type_count; ++t) {
    for (int o = 0; o < reduce_op_count; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      const bool expected = is_bitwise(op) ? is_integer(type) : op != ReduceOp::scaled_sum || !is_integer(type);
      EXPECT_EQ(reduce_kernel(type, op) != nullptr, expected) << name_of(type) << " " << name_of(op);
    }
  }
  EXPECT_EQ(reduce_kernel(static_cast<DataType>(data_type_count), ReduceOp::sum), nullptr);
  EXPECT_EQ(reduce_kernel(DataType::float32, static_cast<ReduceOp>(reduce_op_count)), nullptr);
}

TEST(ReduceKernel, ChosenInstructionSetIsTheBestThatCanRun) {
  EXPECT_EQ(instruction_set(), instruction_sets().front().name);
}

template <class T>
void every_pair_of_8_bit_floats(T (*narrow)(float)) {
  std::vector<T> first, second, sum, product;
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      first.push_back({static_cast<std::uint8_t>(a)});
      second.push_back({static_cast<std::uint8_t>(b)});
      sum.push_back(narrow(base::to_float(first.back()) + base::to_float(second.back())));
      product.push_back(narrow(base::to_float(first.back()) * base::to_float(second.back())));
    }
  }
  for (const InstructionSet& set : instruction_sets()) {
    const auto sums = reduced<T>(set, ReduceOp::sum, {first, second});
    const auto products = reduced<T>(set, ReduceOp::prod, {first, second});
    const auto same = [](T x, T y) {
      return x.bits == y.bits || (std::isnan(base::to_float(x)) && std::isnan(base::to_float(y)));
    };
    for (std::size_t i = 0; i < sum.size(); ++i) {
      ASSERT_TRUE(same(sums[i], sum[i])) << set.name << " " << i / 256 << " + " << i % 256 << ": " << int{sums[i].bits};
      ASSERT_TRUE(same(products[i], product[i])) << set.name << " " << i / 256 << " * " << i % 256;
    }
  }
}

TEST(ReduceSmallFloat, EveryPairOfE4m3) { every_pair_of_8_bit_floats<float8_e4m3>(&base::to_float8_e4m3); }
TEST(ReduceSmallFloat, EveryPairOfE5m2) { every_pair_of_8_bit_floats<float8_e5m2>(&base::to_float8_e5m2); }

// Scaling one source goes through both conversions; these factors put results on ties, into subnormals and overflow.
template <class T>
void every_16_bit_pattern_scaled(T (*narrow)(float)) {
  std::vector<T> input;
  for (unsigned bits = 0; bits < 65536; ++bits) input.push_back({static_cast<std::uint16_t>(bits)});
  const std::uint8_t scaled = 1;
  for (const InstructionSet& set : instruction_sets()) {
    for (const float factor : {1.0F, 1.5F, 0.75F, 3.0F, -0x1p-12F, 0x1.8p-9F, 0x1p13F, 1.0009765625F}) {
      ReduceArguments arguments;
      arguments.scaled = &scaled;
      arguments.factor = factor;
      const auto output = reduced<T>(set, ReduceOp::scaled_sum, {input}, arguments);
      for (std::size_t i = 0; i < input.size(); ++i) {
        const float exact = base::to_float(input[i]) * factor;
        if (std::isnan(exact)) {
          ASSERT_TRUE(std::isnan(base::to_float(output[i]))) << set.name << " " << i;
        } else {
          ASSERT_EQ(output[i].bits, narrow(exact).bits) << set.name << " " << i << " * " << factor;
        }
      }
    }
  }
}

TEST(ReduceSmallFloat, EveryFloat16Scaled) { every_16_bit_pattern_scaled<float16>(&base::to_float16); }
TEST(ReduceSmallFloat, EveryBfloat16Scaled) { every_16_bit_pattern_scaled<bfloat16>(&base::to_bfloat16); }

TEST(ReduceSmallFloat, SumsAreRoundedOnceAtTheEnd) {
  // In bfloat16 256 + 1 is 256 again; in float32 the eight ones survive until the end.
  std::vector<std::vector<bfloat16>> inputs{std::vector<bfloat16>(77, base::to_bfloat16(256.0F))};
  for (int i = 0; i < 8; ++i) inputs.emplace_back(77, base::to_bfloat16(1.0F));
  for (const InstructionSet& set : instruction_sets()) {
    for (const bfloat16 value : reduced(set, ReduceOp::sum, inputs)) EXPECT_EQ(base::to_float(value), 264.0F);
  }
}

TEST(ReduceSmallFloat, E4m3SaturatesAndTheOthersOverflow) {
  for (const InstructionSet& set : instruction_sets()) {
    const std::vector<float8_e4m3> e4m3(5, base::to_float8_e4m3(-448.0F));
    EXPECT_EQ(base::to_float(reduced<float8_e4m3>(set, ReduceOp::sum, {e4m3, e4m3})[4]), -448.0F);
    const std::vector<float8_e5m2> e5m2(5, base::to_float8_e5m2(-57344.0F));
    EXPECT_EQ(base::to_float(reduced<float8_e5m2>(set, ReduceOp::sum, {e5m2, e5m2})[4]), -HUGE_VALF);
    const std::vector<float16> half(5, base::to_float16(65504.0F));
    EXPECT_EQ(base::to_float(reduced<float16>(set, ReduceOp::sum, {half, half})[4]), HUGE_VALF);
  }
}

TEST(ReduceMinMax, NanInAnySourceWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const InstructionSet& set : instruction_sets()) {
    for (std::size_t where = 0; where < 3; ++where) {
      std::vector<std::vector<float>> inputs(3, std::vector<float>(21, 1.0F));
      inputs[where].assign(21, nan);
      for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
        for (const float value : reduced(set, op, inputs)) EXPECT_TRUE(std::isnan(value)) << set.name << " " << where;
      }
    }
  }
}

TEST(ReduceAverage, IntegersWrapThenRoundTowardsZero) {
  ReduceArguments by_three;
  by_three.divisor = 3;
  for (const InstructionSet& set : instruction_sets()) {
    using Bytes = std::vector<std::int8_t>;
    EXPECT_EQ(reduced<std::int8_t>(set, ReduceOp::avg, {Bytes(3, -4), Bytes(3, -4)}, by_three), Bytes(3, -2));
    // 100 + 100 = 200 wraps to -56.
    EXPECT_EQ(reduced<std::int8_t>(set, ReduceOp::avg, {Bytes(70, 100), Bytes(70, 100)}, by_three), Bytes(70, -18));
    // Not representable in double: 2^63 - 1 = 3 * 3074457345618258602 + 1.
    using Longs = std::vector<std::int64_t>;
    EXPECT_EQ(reduced<std::int64_t>(set, ReduceOp::avg, {Longs(9, INT64_MAX), Longs(9, 0)}, by_three),
              Longs(9, 3074457345618258602));
    EXPECT_EQ(reduced<std::int64_t>(set, ReduceOp::avg, {Longs(9, INT64_MIN), Longs(9, 0)}, by_three),
              Longs(9, -3074457345618258602));
  }
}

TEST(ReduceAverage, EveryByteByEveryDivisorUpTo300) {
  std::vector<std::int8_t> numbers, zeros(256, 0);
  std::vector<std::uint8_t> naturals, natural_zeros(256, 0);
  for (int i = 0; i < 256; ++i) {
    numbers.push_back(static_cast<std::int8_t>(i - 128));
    naturals.push_back(static_cast<std::uint8_t>(i));
  }
  for (const InstructionSet& set : instruction_sets()) {
    ReduceArguments arguments;
    for (arguments.divisor = 1; arguments.divisor <= 300; ++arguments.divisor) {
      const auto quotients = reduced<std::int8_t>(set, ReduceOp::avg, {numbers, zeros}, arguments);
      const auto naturals_divided = reduced<std::uint8_t>(set, ReduceOp::avg, {naturals, natural_zeros}, arguments);
      const int divisor = static_cast<int>(arguments.divisor);
      for (int i = 0; i < 256; ++i) {
        ASSERT_EQ(quotients[static_cast<std::size_t>(i)], (i - 128) / divisor) << set.name << " / " << divisor;
        ASSERT_EQ(naturals_divided[static_cast<std::size_t>(i)], i / divisor) << set.name << " / " << divisor;
      }
    }
  }
}

TEST(ReduceScaledSum, ProductIsRoundedBeforeItIsAdded) {
  // With a fused multiply-add the result would be the rounding error of the product instead of zero.
  const float x = 1.0F + 0x1p-12F;
  const float product = x * x;
  const std::uint8_t scaled[] = {0, 1};
  ReduceArguments arguments;
  arguments.scaled = scaled;
  arguments.factor = x;
  for (const InstructionSet& set : instruction_sets()) {
    const auto output = reduced<float>(set, ReduceOp::scaled_sum,
                                       {std::vector<float>(83, -product), std::vector<float>(83, x)}, arguments);
    EXPECT_EQ(output, std::vector<float>(83, 0.0F)) << set.name;
  }
}

TEST(ReduceAverage, PowersOfTwoRoundLikeEveryDivisor) {
  ReduceArguments arguments;
  for (arguments.divisor = 1; arguments.divisor != 0; arguments.divisor *= 2) {
    const auto divisor = static_cast<std::int64_t>(arguments.divisor);
    std::vector<std::int64_t> numbers = {0,
                                         1,
                                         -1,
                                         7,
                                         -7,
                                         8,
                                         -8,
                                         divisor - 1,
                                         1 - divisor,
                                         divisor,
                                         -divisor,
                                         -divisor - 1,
                                         INT64_MAX,
                                         INT64_MIN,
                                         INT64_MIN + 1,
                                         -123456789012345};
    std::vector<std::int64_t> expected;
    for (const std::int64_t number : numbers) expected.push_back(number / divisor);
    // Subnormal quotients are rounded too.
    const std::vector<float> floats = {1.0F, -3.0F, 0x1.FFFFFEp-126F, 0x1.000002p-126F, 0x1.8p-149F, HUGE_VALF};
    std::vector<float> expected_floats;
    for (const float number : floats)
      expected_floats.push_back(static_cast<float>(double{number} / static_cast<double>(divisor)));
    for (const InstructionSet& set : instruction_sets()) {
      const std::vector<std::int64_t> zeros(numbers.size(), 0);
      EXPECT_EQ(reduced<std::int64_t>(set, ReduceOp::avg, {numbers, zeros}, arguments), expected) << divisor;
      const std::vector<float> float_zeros(floats.size(), 0.0F);
      EXPECT_EQ(reduced<float>(set, ReduceOp::avg, {floats, float_zeros}, arguments), expected_floats) << divisor;
    }
  }
}

// A page of memory between two that may not be touched.
class GuardedPage {
 public:
  GuardedPage() : size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* pages = mmap(nullptr, 3 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(pages) + size_;
    if (mprotect(begin_, size_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  ~GuardedPage() { munmap(begin_ - size_, 3 * size_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  std::byte* begin() { return begin_; }
  std::byte* end() { return begin_ + size_; }

 private:
  std::size_t size_;
  std::byte* begin_ = nullptr;
};

TEST(ReduceKernel, TouchesNothingOutsideItsBuffers) {
  GuardedPage first, second, output;
  const std::uint8_t scaled[] = {1, 0};
  for (const InstructionSet& set : instruction_sets()) {
    for (int t = 0; t < data_type_count; ++t) {
      for (int o = 0; o < reduce_op_count; ++o) {
        const auto type = static_cast<DataType>(t);
        const ReduceKernel kernel = kernel_of(set, type, static_cast<ReduceOp>(o));
        if (kernel == nullptr) continue;
        for (std::size_t count = 0; count <= 300; count += count < 70 ? 1 : 23) {
          const std::size_t bytes = count * size_of(type);
          for (const bool at_end : {false, true}) {
            const void* sources[] = {at_end ? first.end() - bytes : first.begin(),
                                     at_end ? second.end() - bytes : second.begin()};
            void* destination = at_end ? output.end() - bytes : output.begin();
            ReduceArguments arguments;
            arguments.sources = sources;
            arguments.source_count = 2;
            arguments.destinations = &destination;
            arguments.destination_count = 1;
            arguments.count = count;
            arguments.scaled = scaled;
            arguments.divisor = 3;
            arguments.stream_first_destination = count % 2 == 1;
            kernel(arguments);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace rondo::executor
