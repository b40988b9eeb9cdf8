// Collectives among ranks that are threads of one process.
#include <rondo/rondo.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace rondo {
namespace {

// Runs `body` on one thread a rank; every communicator is closed by its own thread.
template <class Body>
void with_ranks(int size, Body body, const Config& config = {}) {
  std::vector<Communicator> ranks = Communicator::create_local(size, config);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      Communicator comm = std::move(ranks[static_cast<std::size_t>(r)]);
      body(comm);
    });
  for (std::thread& t : threads) t.join();
}

TEST(LocalWorld, AllReduceSumsOverRanks) {
  for (const int n : {1, 2, 3, 5})
    with_ranks(n, [&](Communicator& comm) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{100}, std::size_t{5000}, std::size_t{300000}}) {
        std::vector<float> data(count);
        for (std::size_t i = 0; i < count; ++i)
          data[i] = static_cast<float>(comm.rank() + 1) + static_cast<float>(i % 7);
        comm.all_reduce(std::span<float>(data));
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(data[i], static_cast<float>(n * (n + 1) / 2) + static_cast<float>(n) * static_cast<float>(i % 7));
      }
      comm.barrier();
    });
}

}  // namespace
}  // namespace rondo
