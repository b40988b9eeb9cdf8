// Every kernel of every instruction set against the scalar oracle.
#include "executor/reduce/reduce.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "instruction_sets.hpp"
#include "reduce_oracle.hpp"

namespace rondo::executor {
namespace {

constexpr std::size_t max_sources = 9;
constexpr std::size_t max_destinations = 3;
constexpr std::size_t max_count = 4099;
constexpr std::size_t margin = 128;  // of bytes that must stay as they are, before and behind
constexpr std::uint32_t divisors[] = {1, 2, 3, 4, 7, 16, 255, 1000, 4294967295U};

bool exists(DataType type, ReduceOp op) {
  if (is_bitwise(op)) return is_integer(type);
  return op != ReduceOp::scaled_sum || !is_integer(type);
}

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes + 2 * margin) {}
  // A place `offset` < 64 bytes from an aligned one.
  std::byte* at(std::size_t offset) { return aligned() + offset; }
  void fill() { std::fill(bytes_.begin(), bytes_.end(), guard); }
  bool untouched_outside(const std::byte* begin, std::size_t size) const {
    const auto* first = bytes_.data();
    const auto* end = first + bytes_.size();
    const auto is_guard = [](std::byte b) { return b == guard; };
    return std::all_of(std::max(first, begin - 64), begin, is_guard) &&
           std::all_of(begin + size, std::min(end, begin + size + 64), is_guard);
  }

 private:
  static constexpr std::byte guard{0xA5};
  std::byte* aligned() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    return bytes_.data() + (0 - address) % 64;
  }
  std::vector<std::byte> bytes_;
};

template <class Element>
class Reduce : public testing::Test {
 protected:
  using Storage = typename Element::Storage;

  Reduce()
      : sources_(max_sources, Buffer(max_count * sizeof(Storage) + 64)), destinations_(max_destinations, sources_[0]) {
    for (auto& input : inputs_) {
      input.resize(max_count);
      for (auto& value : input) value = Element::sample(random_);
    }
  }

  void check_operator(const InstructionSet& set, ReduceOp op) {
    const ReduceKernel kernel =
        set.table.kernels[static_cast<std::size_t>(Element::type)][static_cast<std::size_t>(op)];
    ASSERT_EQ(kernel != nullptr, exists(Element::type, op));
    if (kernel == nullptr) return;
    for (std::size_t sources = 1; sources <= max_sources; ++sources) {
      SCOPED_TRACE(testing::Message() << set.name << " " << name_of(op) << " of " << name_of(Element::type) << ", "
                                      << sources << " sources");
      std::vector<std::uint8_t> scaled(sources);
      for (auto& flag : scaled) flag = static_cast<std::uint8_t>(random_() % 2 * 3);
      oracle::Terms terms{scaled, 0.37, divisors[sources - 1]};
      if (sources == 5) terms.scaled = {};
      std::vector<Storage> expected(max_count), column(sources);
      for (std::size_t i = 0; i < max_count; ++i) {
        for (std::size_t s = 0; s < sources; ++s) column[s] = inputs_[s][i];
        expected[i] = Element::combine(op, column, terms);
      }
      for (std::size_t count = 0; count <= 67; ++count) check_count(kernel, op, sources, count, terms, expected);
      for (const std::size_t count : {128U, 200U, 1023U, 4099U}) {
        check_count(kernel, op, sources, count, terms, expected);
      }
      if (testing::Test::HasFailure()) return;
    }
  }

 private:
  void check_count(ReduceKernel kernel, ReduceOp op, std::size_t sources, std::size_t count, const oracle::Terms& terms,
                   const std::vector<Storage>& expected) {
    for (std::size_t destinations = 1; destinations <= max_destinations; ++destinations) {
      for (int repeat = 0; repeat < 2; ++repeat) {
        check_once(kernel, op, sources, destinations, count, terms, expected);
      }
    }
  }

  // The offsets, whether it is in place, and whether it streams, are drawn.
  void check_once(ReduceKernel kernel, ReduceOp op, std::size_t sources, std::size_t destinations, std::size_t count,
                  const oracle::Terms& terms, const std::vector<Storage>& expected) {
    const bool aligned = random_() % 3 == 0, in_place = random_() % 2 == 0, stream = random_() % 2 == 0;
    const bool element_aligned = random_() % 2 == 0;
    const auto offset = [&]() -> std::size_t {
      if (aligned) return 0;
      return random_() % 64 / (element_aligned ? sizeof(Storage) : 1) * (element_aligned ? sizeof(Storage) : 1);
    };
    const std::size_t bytes = count * sizeof(Storage);
    std::array<const void*, max_sources> source{};
    std::array<void*, max_destinations> destination{};
    std::array<Buffer*, max_destinations> written{};
    const std::size_t shared_source = random_() % sources, shared_destination = random_() % destinations;
    for (std::size_t s = 0; s < sources; ++s) {
      std::byte* place = sources_[s].at(offset());
      if (in_place && s == shared_source) {
        sources_[s].fill();
        destination[shared_destination] = place;
        written[shared_destination] = &sources_[s];
      }
      if (bytes != 0) std::memcpy(place, inputs_[s].data(), bytes);
      source[s] = place;
    }
    for (std::size_t r = 0; r < destinations; ++r) {
      if (destination[r] != nullptr) continue;
      destinations_[r].fill();
      destination[r] = destinations_[r].at(offset());
      written[r] = &destinations_[r];
    }
    ReduceArguments arguments;
    arguments.sources = source.data();
    arguments.source_count = sources;
    arguments.destinations = destination.data();
    arguments.destination_count = destinations;
    arguments.count = count;
    arguments.scaled = terms.scaled.empty() ? nullptr : terms.scaled.data();
    arguments.factor = terms.factor;
    arguments.divisor = terms.divisor;
    arguments.stream_first_destination = stream;
    kernel(arguments);
    for (std::size_t r = 0; r < destinations; ++r) {
      const auto* result = static_cast<const std::byte*>(destination[r]);
      ASSERT_TRUE(written[r]->untouched_outside(result, bytes)) << "destination " << r << ", count " << count;
      if (bytes == 0 || std::memcmp(result, expected.data(), bytes) == 0) continue;
      for (std::size_t i = 0; i < count; ++i) {
        Storage value;
        std::memcpy(&value, result + i * sizeof(Storage), sizeof(Storage));
        ASSERT_TRUE(Element::same(op, value, expected[i]))
            << "element " << i << " of " << count << ", destination " << r << " of " << destinations
            << (in_place ? ", in place" : "") << (stream ? ", streaming" : "") << ": " << testing::PrintToString(value)
            << " instead of " << testing::PrintToString(expected[i]);
      }
    }
  }

  std::mt19937_64 random_{20240229};
  std::array<std::vector<Storage>, max_sources> inputs_;
  std::vector<Buffer> sources_, destinations_;
};

using Elements =
    testing::Types<oracle::Integer<std::int8_t>, oracle::Integer<std::uint8_t>, oracle::Integer<std::int32_t>,
                   oracle::Integer<std::uint32_t>, oracle::Integer<std::int64_t>, oracle::Integer<std::uint64_t>,
                   oracle::Float<float16>, oracle::Float<bfloat16>, oracle::Float<float>, oracle::Float<double>,
                   oracle::Float<float8_e4m3>, oracle::Float<float8_e5m2>>;
TYPED_TEST_SUITE(Reduce, Elements);

TYPED_TEST(Reduce, EveryOperatorEqualsTheScalarDefinition) {
  for (const InstructionSet& set : instruction_sets()) {
    for (int op = 0; op < reduce_op_count; ++op) {
      this->check_operator(set, static_cast<ReduceOp>(op));
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace rondo::executor
