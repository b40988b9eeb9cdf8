// What docs/determinism.md promises, bit for bit.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "communicator/even_calls.hpp"
#include "communicator/ranks.hpp"

namespace rondo {
namespace {

using executor::oracle::Float;

// Values whose sum depends on the order.
template <class T>
T sample(int rank, std::size_t i) {
  const double value = static_cast<double>(mixed(rank, i) >> 11) * 0x1p-53 * 200 - 100;
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  else return executor::oracle::narrow<T>(static_cast<float>(value));
}

template <class T>
T left_fold(int n, std::size_t i, ReduceOp op) {
  std::vector<T> terms;
  for (int r = 0; r < n; ++r) terms.push_back(sample<T>(r, i));
  executor::oracle::Terms how;
  how.divisor = static_cast<std::uint32_t>(n);
  return Float<T>::combine(op, terms, how);
}

template <class T>
void expect_left_fold(Communicator& comm, std::size_t count, ReduceOp op) {
  const auto n = static_cast<std::size_t>(comm.size()), me = static_cast<std::size_t>(comm.rank());
  std::vector<T> input(n * count), output(count);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = sample<T>(comm.rank(), i);
  const auto wrong = [&](std::size_t from) {
    std::size_t bad = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const T right = left_fold<T>(comm.size(), from + i, op);
      bad += std::memcmp(&output[i], &right, sizeof right) != 0;
    }
    return bad;
  };
  comm.all_reduce(input.data(), output.data(), count, data_type_of<T>, op);
  ASSERT_EQ(wrong(0), 0U) << "all_reduce of " << count;
  comm.reduce_scatter(input.data(), output.data(), count, data_type_of<T>, op);
  ASSERT_EQ(wrong(me * count), 0U) << "reduce_scatter of " << count;
  comm.reduce(input.data(), output.data(), count, data_type_of<T>, op, 1);
  if (comm.rank() == 1) {
    ASSERT_EQ(wrong(0), 0U) << "reduce of " << count;
  }
}

TEST(Determinism, ResultsAreTheAscendingLeftFoldWhateverTheSize) {
  Config config = test_config();
  config.deterministic = true;
  for (const int n : {2, 3, 5, 8})
    with_ranks(
        n,
        [](Communicator& comm) {
          for (const std::size_t count : {1U, 17U, 1000U, 20000U}) {
            expect_left_fold<float>(comm, count, ReduceOp::sum);
            expect_left_fold<double>(comm, count, ReduceOp::avg);
            expect_left_fold<float16>(comm, count, ReduceOp::sum);
            expect_left_fold<bfloat16>(comm, count, ReduceOp::avg);
          }
        },
        config);
}

TEST(Determinism, EveryAlgorithmOfTheModeGivesTheSameBits) {
  for (const char* pin : {"all_reduce:0-inf=one_shot", "all_reduce:0-inf=two_shot"})
    for (const std::size_t fifo_bytes : {std::size_t{65536}, std::size_t{1} << 20}) {
      Config config = pinned(pin);
      config.deterministic = true;
      config.fifo_bytes = fifo_bytes;
      with_ranks(
          4, [](Communicator& comm) { expect_left_fold<float>(comm, 30000, ReduceOp::sum); }, config);
    }
}

TEST(Determinism, RefusesAPinThatTheModeCannotServe) {
  Config config = pinned("all_reduce:0-inf=ring");
  config.deterministic = true;
  with_ranks(
      2,
      [](Communicator& comm) {
        std::vector<float> data(100);
        std::string text;
        EXPECT_EQ(code_of([&] { comm.all_reduce(std::span(data)); }, &text), ErrorCode::configuration);
        EXPECT_NE(text.find("not deterministic"), std::string::npos) << text;
      },
      config);
}

TEST(Determinism, AllRanksGetTheSameBitsInTheOrdinaryModeToo) {
  for (const char* pin : {"all_reduce:0-inf=ring", "all_reduce:0-inf=recursive_doubling", ""})
    for (const int n : {3, 5, 6}) {
      with_ranks(
          n,
          [](Communicator& comm) {
            constexpr std::size_t count = 30000;
            std::vector<float> data(count), again(count);
            for (std::size_t i = 0; i < count; ++i) data[i] = again[i] = sample<float>(comm.rank(), i);
            comm.all_reduce(std::span(data));
            comm.all_reduce(std::span(again));
            ASSERT_EQ(std::memcmp(data.data(), again.data(), count * sizeof(float)), 0);
            std::vector<float> first = data;
            comm.broadcast(std::span(first), 0);
            ASSERT_EQ(std::memcmp(data.data(), first.data(), count * sizeof(float)), 0);
          },
          pinned(pin));
    }
}

}  // namespace
}  // namespace rondo
