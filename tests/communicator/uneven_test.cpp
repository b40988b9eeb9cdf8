// The uneven forms: zero counts for some ranks, gaps between blocks, blocks in any order, in place.
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "communicator/ranks.hpp"

namespace rondo {
namespace {

using Counts = std::vector<std::size_t>;
constexpr std::int32_t untouched = -7;

// Blocks with gaps, the last rank's first.
Counts displacements_of(const Counts& counts, std::size_t gap) {
  Counts at(counts.size());
  std::size_t next = gap;
  for (std::size_t i = counts.size(); i-- > 0;) {
    at[i] = next;
    next += counts[i] + gap;
  }
  return at;
}
std::size_t room_of(const Counts& counts, std::size_t gap) {
  return std::accumulate(counts.begin(), counts.end(), gap * (counts.size() + 1));
}
std::int32_t value(int from, int to, std::size_t i) {
  return from * 1000003 + to * 10007 + static_cast<std::int32_t>(i % 9973);
}
// What each count is, by what the ranks share.
Counts counts_for(int n, std::uint64_t seed, std::size_t most) {
  std::mt19937_64 random(seed);
  Counts counts;
  for (int r = 0; r < n; ++r) counts.push_back(random() % 3 == 0 ? 0 : random() % most);
  return counts;
}

class Uneven : public testing::TestWithParam<int> {};

TEST_P(Uneven, AllGatherV) {
  const int n = GetParam();
  with_ranks(n, [&](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Counts counts = counts_for(n, seed, seed < 6 ? 50 : 60000);
      const std::size_t gap = seed % 3;
      const Counts at = displacements_of(counts, gap);
      std::vector<std::int32_t> output(room_of(counts, gap), untouched), input(counts[me]);
      for (std::size_t i = 0; i < counts[me]; ++i) input[i] = value(comm.rank(), 0, i);
      const bool in_place = seed % 2 == 1;
      if (in_place) std::copy(input.begin(), input.end(), output.begin() + static_cast<std::ptrdiff_t>(at[me]));
      comm.all_gather_v(in_place ? output.data() + at[me] : input.data(), output.data(), counts, at, DataType::int32);
      std::vector<std::int32_t> right(output.size(), untouched);
      for (std::size_t r = 0; r < counts.size(); ++r)
        for (std::size_t i = 0; i < counts[r]; ++i) right[at[r] + i] = value(static_cast<int>(r), 0, i);
      ASSERT_EQ(output, right) << "seed " << seed;
    }
  });
}

TEST_P(Uneven, ReduceScatterV) {
  const int n = GetParam();
  with_ranks(n, [&](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Counts counts = counts_for(n, seed + 100, seed < 6 ? 50 : 60000);
      std::size_t before = 0;
      for (std::size_t r = 0; r < me; ++r) before += counts[r];
      std::vector<std::int32_t> input(room_of(counts, 0)), output(counts[me], untouched);
      for (std::size_t i = 0; i < input.size(); ++i) input[i] = value(comm.rank(), 0, i);
      const bool in_place = seed % 2 == 1;
      std::int32_t* to = in_place ? input.data() + before : output.data();
      comm.reduce_scatter_v(input.data(), to, counts, DataType::int32);
      for (std::size_t i = 0; i < counts[me]; ++i) {
        std::int32_t sum = 0;
        for (int r = 0; r < n; ++r) sum += value(r, 0, before + i);
        ASSERT_EQ(to[i], sum) << "seed " << seed << " element " << i;
      }
    }
  });
}

TEST_P(Uneven, AllToAllV) {
  const int n = GetParam();
  with_ranks(n, [&](Communicator& comm) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      // matrix[s][r]: elements from s to r.
      std::vector<Counts> matrix;
      for (int s = 0; s < n; ++s)
        matrix.push_back(counts_for(n, seed * 50 + static_cast<std::uint64_t>(s) + 7, seed < 6 ? 40 : 40000));
      const auto me = static_cast<std::size_t>(comm.rank());
      const Counts& sends = matrix[me];
      Counts receives;
      for (const Counts& row : matrix) receives.push_back(row[me]);
      const std::size_t gap = seed % 3;
      const Counts from = displacements_of(sends, gap), to = displacements_of(receives, 2 - gap);
      std::vector<std::int32_t> input(room_of(sends, gap)), output(room_of(receives, 2 - gap), untouched);
      for (std::size_t r = 0; r < sends.size(); ++r)
        for (std::size_t i = 0; i < sends[r]; ++i) input[from[r] + i] = value(comm.rank(), static_cast<int>(r), i);
      comm.all_to_all_v(input.data(), sends, from, output.data(), receives, to, DataType::int32);
      std::vector<std::int32_t> right(output.size(), untouched);
      for (std::size_t s = 0; s < receives.size(); ++s)
        for (std::size_t i = 0; i < receives[s]; ++i) right[to[s] + i] = value(static_cast<int>(s), comm.rank(), i);
      ASSERT_EQ(output, right) << "seed " << seed;
    }
  });
}

TEST_P(Uneven, GatherVAndScatterVWithEveryRoot) {
  const int n = GetParam();
  with_ranks(n, [&](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    for (int root = 0; root < n; ++root)
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const Counts counts = counts_for(n, seed + 31, seed < 3 ? 50 : 60000);
        const std::size_t gap = seed % 3;
        const Counts at = displacements_of(counts, gap);
        const bool is_root = comm.rank() == root;
        std::vector<std::int32_t> whole(is_root ? room_of(counts, gap) : 0, untouched), mine(counts[me]);
        for (std::size_t i = 0; i < counts[me]; ++i) mine[i] = value(comm.rank(), root, i);
        const std::span<const std::size_t> none;
        comm.gather_v(mine.data(), counts[me], whole.data(), is_root ? std::span(counts) : none,
                      is_root ? std::span(at) : none, DataType::int32, root);
        if (is_root) {
          std::vector<std::int32_t> right(whole.size(), untouched);
          for (std::size_t r = 0; r < counts.size(); ++r)
            for (std::size_t i = 0; i < counts[r]; ++i) right[at[r] + i] = value(static_cast<int>(r), root, i);
          ASSERT_EQ(whole, right) << "seed " << seed;
        }
        std::vector<std::int32_t> back(counts[me], untouched);
        comm.scatter_v(whole.data(), is_root ? std::span(counts) : none, is_root ? std::span(at) : none, back.data(),
                       counts[me], DataType::int32, root);
        ASSERT_EQ(back, mine) << "seed " << seed;
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Communicator, Uneven, testing::Values(1, 2, 3, 4, 5, 8),
                         [](const auto& tested) { return "n" + std::to_string(tested.param); });

TEST(UnevenArguments, WrongListsLeaveTheCommunicatorUsable) {
  with_ranks(2, [&](Communicator& comm) {
    std::vector<std::int32_t> a(8), b(8);
    const Counts counts{2, 2}, at{0, 2}, overlapping{0, 1}, three{1, 1, 1};
    EXPECT_EQ(code_of([&] { comm.all_gather_v(a.data(), b.data(), three, at, DataType::int32); }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.all_gather_v(a.data(), b.data(), counts, overlapping, DataType::int32); }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.reduce_scatter_v(a.data(), b.data(), three, DataType::int32); }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.all_to_all_v(a.data(), counts, at, a.data(), counts, at, DataType::int32); }),
              ErrorCode::invalid_argument);
    const Counts huge{static_cast<std::size_t>(-1), 2};
    EXPECT_EQ(code_of([&] { comm.all_gather_v(a.data(), b.data(), huge, at, DataType::int32); }),
              ErrorCode::invalid_argument);
    if (comm.rank() == 0) {
      EXPECT_EQ(code_of([&] { comm.gather_v(a.data(), 3, b.data(), counts, at, DataType::int32, 0); }),
                ErrorCode::invalid_argument);
    }
    comm.all_gather_v(a.data(), b.data(), counts, at, DataType::int32);
  });
}

// Only the pair knows what it exchanges, so the pair must find out.
TEST(UnevenArguments, APairThatDisagreesGetsAMismatch) {
  with_ranks(2, [&](Communicator& comm) {
    std::vector<std::int32_t> a(8), b(8);
    const Counts send = comm.rank() == 0 ? Counts{0, 3} : Counts{1, 0};
    const Counts receive = comm.rank() == 0 ? Counts{0, 1} : Counts{2, 0};
    const Counts at{0, 4};
    EXPECT_EQ(code_of([&] {
                comm.all_to_all_v(a.data(), send, at, b.data(), receive, at, DataType::int32);
                comm.barrier();
              }),
              ErrorCode::mismatch);
  });
}

}  // namespace
}  // namespace rondo
