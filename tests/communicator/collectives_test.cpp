// Every even collective against an oracle: by algorithm and number of ranks, by type and operator, by where the buffers
// lie.
#include <algorithm>
#include <atomic>
#include <ostream>
#include <random>
#include <string>

#include "algorithms/registry.hpp"
#include "communicator/even_calls.hpp"
#include "communicator/ranks.hpp"

namespace rondo {
namespace {

struct Row {
  const algorithms::Algorithm* algorithm;
  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.algorithm->name; }
};
std::vector<Row> rows() {
  std::vector<Row> all;
  for (const auto& a : algorithms::all())
    if (a.collective != Collective::barrier) all.push_back({&a});
  return all;
}
std::string row_name(const testing::TestParamInfo<Row>& info) {
  return std::string(name_of(info.param.algorithm->collective)) + "_" + std::string(info.param.algorithm->name);
}
std::string pin_of(const algorithms::Algorithm& a) {
  return std::string(name_of(a.collective)) + ":0-inf=" + std::string(a.name);
}

class EveryAlgorithm : public testing::TestWithParam<Row> {};

TEST_P(EveryAlgorithm, GivesTheRightValuesForEveryNumberOfRanksAndRoot) {
  const auto& a = *GetParam().algorithm;
  for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 16})
    with_ranks(
        n,
        [&](Communicator& comm) {
          std::vector<std::byte> room(room_bytes(4 * 70001 * static_cast<std::size_t>(n)));
          for (const std::size_t count : {0U, 1U, 2U, 7U, 20U, 333U, 5000U}) {
            for (int root = 0; root < (rooted(a.collective) ? n : 1); ++root) {
              if (n > 8 && root % 5 != 0) continue;
              const EvenCall call{a.collective, DataType::float32, ReduceOp::sum, count, root};
              ASSERT_EQ(wrong_elements(comm, call, room.data()), 0U) << count << " elements, root " << root;
              ASSERT_EQ(wrong_elements(comm, call, room.data(), 0, true), 0U) << count << " in place, root " << root;
            }
          }
          if (n > 8) return;
          // Past a tile of several slices, with a ragged end.
          const EvenCall large{a.collective, DataType::float32, ReduceOp::sum, 70001, n - 1};
          ASSERT_EQ(wrong_elements(comm, large, room.data()), 0U);
          ASSERT_EQ(wrong_elements(comm, large, room.data(), 4, true), 0U);
        },
        pinned(pin_of(a)));
}

TEST_P(EveryAlgorithm, TakesPlainWindowAndInPlaceBuffersAtAnyOffsetOfAnyRank) {
  const auto& a = *GetParam().algorithm;
  for (const int n : {2, 3, 4})
    with_ranks(
        n,
        [&](Communicator& comm) {
          constexpr std::size_t most = 40000;
          const std::size_t bytes = room_bytes(4 * most * static_cast<std::size_t>(n));
          Room plain(comm, bytes, false), window(comm, bytes, true);
          std::mt19937 shared(17), own(static_cast<unsigned>(comm.rank()));
          for (int round = 0; round < 16; ++round) {
            const std::size_t count = round % 4 == 0 ? shared() % 64 : shared() % most;
            const int root = static_cast<int>(shared() % static_cast<unsigned>(n));
            const EvenCall call{a.collective, DataType::float32, ReduceOp::sum, count, root};
            const auto place = static_cast<Place>(own() % place_count);
            const bool in_window = place == Place::window || place == Place::window_in_place;
            const bool in_place = place == Place::in_place || place == Place::window_in_place;
            // Any multiple of the element, so lines are split in every way.
            const std::size_t offset = own() % 1000 * 4;
            ASSERT_EQ(wrong_elements(comm, call, in_window ? window.data() : plain.data(), offset, in_place), 0U)
                << "round " << round << ", " << count << " elements, root " << root << ", place "
                << static_cast<int>(place) << ", offset " << offset;
          }
          comm.barrier();  // nobody frees a window that a peer still reads
        },
        pinned(pin_of(a)));
}

INSTANTIATE_TEST_SUITE_P(Communicator, EveryAlgorithm, testing::ValuesIn(rows()), row_name);

class EveryType : public testing::TestWithParam<DataType> {};

TEST_P(EveryType, ReducesByEveryOperatorThatItHas) {
  const DataType type = GetParam();
  for (const int n : {1, 2, 3, 4})
    with_ranks(n, [&](Communicator& comm) {
      std::vector<std::byte> room(room_bytes(8 * 20000 * static_cast<std::size_t>(n)));
      for (int o = 0; o < reduce_op_count; ++o) {
        const auto op = static_cast<ReduceOp>(o);
        if (is_bitwise(op) && !is_integer(type)) continue;
        if (op == ReduceOp::scaled_sum && is_integer(type)) continue;
        for (const Collective c : {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}) {
          for (const std::size_t count : {0, 1, 2, 3, 5, 8, 13, 16, 17, 20, 1001}) {
            const EvenCall call{c, type, op, count, n - 1};
            ASSERT_EQ(wrong_elements(comm, call, room.data()), 0U)
                << name_of(c) << " " << name_of(op) << " of " << count << " on " << n;
          }
          ASSERT_EQ(wrong_elements(comm, {c, type, op, 20000, 0}, room.data(), 0, true), 0U)
              << name_of(c) << " " << name_of(op) << " large on " << n;
        }
      }
    });
}

TEST_P(EveryType, IsMovedUnchanged) {
  const DataType type = GetParam();
  with_ranks(3, [&](Communicator& comm) {
    std::vector<std::byte> room(room_bytes(8 * 30000 * 3));
    for (const Collective c : {Collective::all_gather, Collective::broadcast, Collective::all_to_all,
                               Collective::gather, Collective::scatter})
      for (const std::size_t count : {0, 1, 3, 20, 999, 30000})
        ASSERT_EQ(wrong_elements(comm, {c, type, ReduceOp::sum, count, 1}, room.data()), 0U)
            << name_of(c) << " of " << count;
  });
}

std::vector<DataType> every_type() {
  std::vector<DataType> types;
  for (int t = 0; t < data_type_count; ++t) types.push_back(static_cast<DataType>(t));
  return types;
}
INSTANTIATE_TEST_SUITE_P(Communicator, EveryType, testing::ValuesIn(every_type()),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST(Collectives, EverySmallCountFromZeroToTwenty) {
  with_ranks(3, [&](Communicator& comm) {
    std::vector<std::byte> room(room_bytes(8 * 20 * 3));
    for (std::size_t count = 0; count <= 20; ++count)
      for (int c = 0; c <= static_cast<int>(Collective::scatter); ++c)
        for (const DataType type : {DataType::int8, DataType::float16, DataType::int32, DataType::float64}) {
          const EvenCall call{static_cast<Collective>(c), type, ReduceOp::max, count, 2};
          ASSERT_EQ(wrong_elements(comm, call, room.data()), 0U) << name_of(call.collective) << " of " << count;
        }
  });
}

TEST(Collectives, CrossSlicesAndTilesAtEveryEdge) {
  with_ranks(3, [&](Communicator& comm) {
    constexpr std::size_t slice = 64 * 1024;  // elements of one byte
    std::vector<std::byte> room(room_bytes(3 * (4 * slice + 1)));
    for (const std::size_t count : {slice - 1, slice, slice + 1, 2 * slice, 2 * slice + 1, 4 * slice + 1})
      for (int c = 0; c <= static_cast<int>(Collective::scatter); ++c) {
        const EvenCall call{static_cast<Collective>(c), DataType::uint8, ReduceOp::bxor, count, 1};
        ASSERT_EQ(wrong_elements(comm, call, room.data()), 0U) << name_of(call.collective) << " of " << count;
      }
  });
}

TEST(Collectives, BarrierHoldsBackUntilAllHaveCome) {
  for (const char* pin : {"barrier:0-inf=one_shot", "barrier:0-inf=recursive_doubling"})
    for (const int n : {1, 2, 3, 4, 5, 8}) {
      std::atomic<int> arrived{0};
      with_ranks(
          n,
          [&](Communicator& comm) {
            for (int round = 1; round <= 20; ++round) {
              arrived.fetch_add(1);
              comm.barrier();
              ASSERT_GE(arrived.load(), round * n);
            }
          },
          pinned(pin));
    }
}

TEST(Collectives, NullIsAcceptedWithACountOfZero) {
  with_ranks(3, [&](Communicator& comm) {
    comm.all_reduce(nullptr, nullptr, 0, DataType::float32);
    comm.all_gather(nullptr, nullptr, 0, DataType::float32);
    comm.reduce_scatter(nullptr, nullptr, 0, DataType::float32);
    comm.broadcast(nullptr, nullptr, 0, DataType::float32, 1);
    comm.reduce(nullptr, nullptr, 0, DataType::float32, ReduceOp::sum, 1);
    comm.all_to_all(nullptr, nullptr, 0, DataType::float32);
    comm.gather(nullptr, nullptr, 0, DataType::float32, 1);
    comm.scatter(nullptr, nullptr, 0, DataType::float32, 1);
    std::vector<std::byte> room(room_bytes(64));
    EXPECT_EQ(wrong_elements(comm, {Collective::all_reduce, DataType::int32, ReduceOp::sum, 4, 0}, room.data()), 0U);
  });
}

TEST(Collectives, BuffersOfNonRootsAreIgnoredWhereOnlyTheRootHasThem) {
  with_ranks(3, [&](Communicator& comm) {
    const bool root = comm.rank() == 2;
    std::vector<std::int32_t> mine(5, comm.rank()), all(15, -1);
    comm.gather(mine.data(), root ? all.data() : nullptr, 5, DataType::int32, 2);
    if (root) {
      for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(all[i], static_cast<std::int32_t>(i / 5));
    }
    comm.scatter(root ? all.data() : nullptr, mine.data(), 5, DataType::int32, 2);
    EXPECT_EQ(mine, std::vector<std::int32_t>(5, comm.rank()));
    comm.reduce(mine.data(), root ? all.data() : nullptr, 5, DataType::int32, ReduceOp::sum, 2);
    if (root) {
      EXPECT_EQ(all[4], 3);
    }
    comm.broadcast(root ? mine.data() : nullptr, all.data(), 5, DataType::int32, 2);
    EXPECT_EQ(all[4], 2);
  });
}

TEST(Collectives, TypedFormsJudgeTheSizesOfTheirSpans) {
  with_ranks(2, [&](Communicator& comm) {
    std::vector<float> two{1, 2}, four(4), three(3);
    const std::span<const float> input(two);
    EXPECT_EQ(code_of([&] { comm.all_gather(input, std::span(three)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.all_reduce(input, std::span(three)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.all_to_all(std::span<const float>(three), std::span(three)); }),
              ErrorCode::invalid_argument);
    comm.all_gather(input, std::span(four));
    EXPECT_EQ(four, (std::vector<float>{1, 2, 1, 2}));
    std::vector<float> one(1);
    comm.reduce_scatter(input, std::span(one));
    EXPECT_EQ(one[0], comm.rank() == 0 ? 2.0F : 4.0F);
  });
}

// Two ranks' 2.2 GB in place each.
TEST(CollectivesLong, CountsPastTwoToTheThirtyFirst) {
  constexpr std::size_t count = (std::size_t{1} << 31) + 77;
  with_ranks(2, [&](Communicator& comm) {
    std::vector<std::int8_t> data(count, static_cast<std::int8_t>(comm.rank() + 1));
    const std::size_t marks[] = {0, (std::size_t{1} << 31) - 1, std::size_t{1} << 31, count - 1};
    for (const std::size_t m : marks) data[m] = static_cast<std::int8_t>(10 * (comm.rank() + 1));
    comm.all_reduce(std::span<std::int8_t>(data));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i)
      wrong += data[i] != (std::find(std::begin(marks), std::end(marks), i) != std::end(marks) ? 30 : 3);
    EXPECT_EQ(wrong, 0U);
  });
}

}  // namespace
}  // namespace rondo
