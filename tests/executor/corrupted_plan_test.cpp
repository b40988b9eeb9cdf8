// Nothing bypasses plans: one step of the plan that a communicator runs is corrupted, on one rank, and the values are
// wrong or a call fails, for every algorithm and class of sizes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ostream>
#include <string>
#include <vector>

#include "algorithms/registry.hpp"
#include "communicator/even_calls.hpp"
#include "communicator/ranks.hpp"
#include "executor/corruption.hpp"

namespace rondo {
namespace {

constexpr int ranks = 4;
constexpr int root = 1;
constexpr int corrupted_rank = 2;

// Wrong elements on all ranks, with calls that failed counted as one.
std::size_t run(const algorithms::Algorithm& a, std::size_t count, std::chrono::milliseconds deadline) {
  Config config = pinned(std::string(name_of(a.collective)) + ":0-inf=" + std::string(a.name));
  config.deadline = deadline;
  std::atomic<std::size_t> wrong{0};
  std::vector<Communicator> comms = Communicator::create_local(ranks, config);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      try {
        Communicator comm = std::move(comms[static_cast<std::size_t>(r)]);
        if (a.collective == Collective::barrier) {
          comm.barrier();
          return;
        }
        std::vector<std::byte> room(room_bytes(4 * count * ranks));
        wrong += wrong_elements(comm, {a.collective, DataType::float32, ReduceOp::sum, count, root}, room.data());
      } catch (const Error&) {
        ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  return wrong.load();
}

struct Row {
  const algorithms::Algorithm* algorithm;
  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.algorithm->name; }
};

class CorruptedPlan : public testing::TestWithParam<Row> {};

TEST_P(CorruptedPlan, IsSeenInTheValuesOrAsAnErrorAtEverySize) {
  const auto& a = *GetParam().algorithm;
  constexpr std::chrono::milliseconds minute(60000);
  int corruptions = 0;
  // Nearly nothing, yet no chunk empty (they are cut at multiples of 64 bytes); one slice; several tiles.
  for (const std::size_t count : {60U, 5000U, 100000U}) {
    if (a.collective == Collective::barrier && count != 60) continue;
    ASSERT_EQ(run(a, count, minute), 0U) << "uncorrupted, " << count << " elements";
    for (int h = 0; h < 4; ++h)
      for (int step = 0; step < (count == 60 ? 16 : 2); ++step) {
        const auto how = static_cast<Corruption>(h);
        // A barrier moves nothing: only what holds ranks back counts.
        if (a.collective == Collective::barrier && how != Corruption::forgets_to_send) continue;
        // Missing messages end by deadline, each after a while: one step stands for all.
        if (how == Corruption::forgets_to_send && step > 0) continue;
        const Interception interception(a.collective, corrupted_rank, how, step);
        const bool ends_late = how == Corruption::forgets_to_send;
        const std::size_t wrong = run(a, count, ends_late ? std::chrono::milliseconds(150) : minute);
        if (!interception.applied()) break;
        ++corruptions;
        EXPECT_GT(wrong, 0U) << "step " << step << " " << corruption_names[h] << ", " << count << " elements";
      }
  }
  EXPECT_GT(corruptions, 0);
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const auto& a : algorithms::all()) all.push_back({&a});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Executor, CorruptedPlan, testing::ValuesIn(rows()), [](const auto& tested) {
  return std::string(name_of(tested.param.algorithm->collective)) + "_" + std::string(tested.param.algorithm->name);
});

}  // namespace
}  // namespace rondo
