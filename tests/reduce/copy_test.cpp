// Copies: every short length, both sides of every threshold, ordinary and streaming.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "executor/reduce/reduce.hpp"
#include "instruction_sets.hpp"

namespace rondo::executor {
namespace {

constexpr std::byte guard{0xA5};

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random() & 0xFF);
  return bytes;
}

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i <= 330; ++i) all.push_back(i);
  for (const std::size_t i : {16383U, 16384U, 16385U, 70001U}) all.push_back(i);
  return all;
}

// Checks that `output` holds `bytes` bytes of `input` behind `offset` guards, and guards after them.
void expect_copied(const std::vector<std::byte>& output, const std::byte* input, std::size_t offset,
                   std::size_t bytes) {
  const auto is_guard = [](std::byte b) { return b == guard; };
  const auto begin = output.begin() + static_cast<std::ptrdiff_t>(offset);
  const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
  ASSERT_TRUE(std::all_of(output.begin(), begin, is_guard)) << bytes;
  ASSERT_TRUE(std::equal(begin, end, input)) << bytes;
  ASSERT_TRUE(std::all_of(end, output.end(), is_guard)) << bytes;
}

TEST(Copy, EveryLengthAtEveryKindOfOffset) {
  const auto input = random_bytes(70100);
  for (const std::size_t bytes : lengths()) {
    for (const bool stream : {false, true}) {
      for (const std::size_t offset : {0U, 1U, 16U, 63U}) {
        std::vector<std::byte> output(bytes + 128, guard);
        copy(input.data() + 3, output.data() + offset, bytes, stream);
        expect_copied(output, input.data() + 3, offset, bytes);
      }
    }
  }
}

TEST(Copy, SeveralDestinationsReceiveTheSame) {
  const auto input = random_bytes(70100);
  for (const std::size_t bytes : lengths()) {
    for (std::size_t count = 1; count <= 3; ++count) {
      std::vector<std::vector<std::byte>> outputs(count, std::vector<std::byte>(bytes + 128, guard));
      std::vector<void*> destinations;
      for (std::size_t i = 0; i < count; ++i) destinations.push_back(outputs[i].data() + 17 * i);
      copy(input.data(), destinations.data(), count, bytes, bytes % 2 == 0);
      for (std::size_t i = 0; i < count; ++i) expect_copied(outputs[i], input.data(), 17 * i, bytes);
    }
  }
}

TEST(Copy, OntoItselfChangesNothing) {
  const auto input = random_bytes(5000);
  for (const bool stream : {false, true}) {
    auto buffer = input;
    std::vector<std::byte> other(5000);
    void* destinations[] = {buffer.data(), other.data()};
    copy(buffer.data(), destinations, 2, buffer.size(), stream);
    copy(buffer.data(), buffer.data(), buffer.size(), stream);
    EXPECT_EQ(buffer, input);
    EXPECT_EQ(other, input);
  }
}

TEST(Copy, EveryInstructionSetStreamsTheSame) {
  const auto input = random_bytes(2000);
  for (const InstructionSet& set : instruction_sets()) {
    for (const std::size_t bytes : {1U, 64U, 255U, 256U, 319U, 320U, 1999U}) {
      for (const std::size_t offset : {0U, 5U, 64U}) {
        std::vector<std::byte> output(bytes + 128, guard);
        set.stream_copy(input.data(), output.data() + offset, bytes);
        expect_copied(output, input.data(), offset, bytes);
      }
    }
  }
}

}  // namespace
}  // namespace rondo::executor
