#include "bootstrap/control_tree.hpp"

#include "base/bytes.hpp"
#include "base/wait.hpp"
#include "bootstrap/control_frame.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

namespace rondo::bootstrap {
namespace {

constexpr base::Nanoseconds second = 1'000'000'000;

// One direction of a link in memory.
struct Pipe {
  std::mutex mutex;
  std::deque<std::vector<std::byte>> frames;
  bool closed = false;
  std::function<void()> on_send;  // set while nothing is sent
};

class MemoryLink final : public ControlLink {
 public:
  MemoryLink(std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out) : in_(std::move(in)), out_(std::move(out)) {}
  ~MemoryLink() override {
    for (auto* pipe : {in_.get(), out_.get()}) {
      const std::lock_guard lock(pipe->mutex);
      pipe->closed = true;
    }
  }
  void send(std::span<const std::byte> frame) override {
    {
      const std::lock_guard lock(out_->mutex);
      if (!out_->closed) out_->frames.emplace_back(frame.begin(), frame.end());
    }
    if (out_->on_send) out_->on_send();
  }
  std::optional<std::vector<std::byte>> receive() override {
    const std::lock_guard lock(in_->mutex);
    if (in_->frames.empty()) return std::nullopt;
    auto frame = std::move(in_->frames.front());
    in_->frames.pop_front();
    return frame;
  }
  bool closed() const override {
    const std::lock_guard lock(in_->mutex);
    return in_->closed && in_->frames.empty();
  }
  std::string why() const override { return {}; }

 private:
  std::shared_ptr<Pipe> in_;
  std::shared_ptr<Pipe> out_;
};

// The real system with a clock that tests move.
class FakeClock final : public base::System {
 public:
  base::Nanoseconds now() const override { return time; }
  void yield() override { real().yield(); }
  void futex_wait(std::atomic<std::uint32_t>&, std::uint32_t, base::Nanoseconds limit) override { time += limit; }
  void futex_wake(std::atomic<std::uint32_t>&) override {}
  std::unique_ptr<base::SystemThread> start_thread(std::string, std::function<void()>) override { return nullptr; }
  bool heavy_barrier() override { return false; }
  std::uint32_t spin_limit() const override { return 0; }
  base::Nanoseconds time = 1000 * second;
};

struct Received {
  int at = 0;
  ControlMessage message;
};

// All ranks of a world in this process. Their service "threads" are one: the test's own by pump(), or a background one
// while calls block.
class World {
 public:
  explicit World(int size, base::Nanoseconds heartbeat = 0, base::System& system = base::System::real())
      : system_(system), bells_(static_cast<std::size_t>(size)) {
    std::vector<std::map<int, std::unique_ptr<ControlLink>>> links(static_cast<std::size_t>(size));
    std::vector<std::string> names;
    for (int child = 0; child < size; ++child) {
      names.push_back(fmt::format("rank {} (host, pid {})", child, child));
      if (child == 0) continue;
      const int parent = (child - 1) / 4;
      auto up = std::make_shared<Pipe>();
      auto down = std::make_shared<Pipe>();
      pipes[{child, parent}] = up;
      pipes[{parent, child}] = down;
      links[static_cast<std::size_t>(child)][parent] = std::make_unique<MemoryLink>(down, up);
      links[static_cast<std::size_t>(parent)][child] = std::make_unique<MemoryLink>(up, down);
    }
    for (int rank = 0; rank < size; ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      trees.push_back(std::make_unique<ControlTree>(system, rank, size, std::move(links[i]), heartbeat, names));
      failures.emplace_back();
      ControlHandlers handlers;
      handlers.on_message = [this, rank](const ControlMessage& message) { received.push_back({rank, message}); };
      handlers.on_rank_failed = [this, i](int failed, const std::string& why) {
        failures[i].emplace_back(failed, why);
      };
      trees.back()->start(std::move(handlers), bells_[i], [] {});
    }
  }
  ~World() {
    if (!service_.joinable()) return;
    stop_ = true;
    service_.join();
  }

  ControlTree& operator[](int rank) { return *trees[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(trees.size()); }

  // Until nothing moves any more: a frame crosses the tree in at most twice its depth.
  void pump(int rounds = 20, const std::set<int>& silent = {}) {
    for (int i = 0; i < rounds; ++i) {
      for (int rank = 0; rank < size(); ++rank) {
        auto& tree = trees[static_cast<std::size_t>(rank)];
        if (tree && !silent.contains(rank)) tree->progress();
      }
    }
  }
  void kill(int rank) { trees[static_cast<std::size_t>(rank)].reset(); }
  void serve() {
    service_ = std::thread([this] {
      std::atomic<std::uint32_t> nap{0};
      while (!stop_) {
        pump(1);
        base::System::real().futex_wait(nap, 0, 100'000);
      }
    });
  }
  // Runs `call` for the ranks on a thread each; the errors they threw by rank.
  template <class Call>
  std::map<int, Error> on_threads(const std::vector<int>& ranks, Call&& call) {
    serve();
    std::mutex mutex;
    std::map<int, Error> errors;
    std::vector<std::thread> threads;
    for (const int rank : ranks) {
      threads.emplace_back([&, rank] {
        try {
          call(rank);
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          errors.emplace(rank, error);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    return errors;
  }
  base::Nanoseconds in(base::Nanoseconds time) { return system_.now() + time; }

  std::vector<std::unique_ptr<ControlTree>> trees;
  std::map<std::pair<int, int>, std::shared_ptr<Pipe>> pipes;  // from, to
  std::vector<Received> received;
  std::vector<std::vector<std::pair<int, std::string>>> failures;

 private:
  base::System& system_;
  std::vector<base::DoorbellWord> bells_;
  std::atomic<bool> stop_{false};
  std::thread service_;
};

std::vector<int> all_ranks(int size) {
  std::vector<int> out;
  for (int rank = 0; rank < size; ++rank) out.push_back(rank);
  return out;
}

// The oracle: breadth-first search over the tree's edges.
int first_hop_by_search(int size, int from, int to) {
  std::map<int, int> came_from{{to, to}};
  std::deque<int> queue{to};
  while (!queue.empty()) {
    const int at = queue.front();
    queue.pop_front();
    for (int other = 0; other < size; ++other) {
      const bool edge = (other > 0 && (other - 1) / 4 == at) || (at > 0 && (at - 1) / 4 == other);
      if (edge && came_from.emplace(other, at).second) queue.push_back(other);
    }
  }
  return came_from.at(from);
}

TEST(ControlRoutes, EveryHopIsTheOneASearchFinds) {
  constexpr int size = 30;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (from == to) continue;
      EXPECT_EQ(next_hop(from, to), first_hop_by_search(size, from, to)) << from << " to " << to;
      std::set<int> path{from};
      for (int at = from; at != to; path.insert(at)) at = first_hop_by_search(size, at, to);
      for (int rank = 0; rank < size; ++rank) EXPECT_EQ(on_path(rank, from, to), path.contains(rank));
    }
  }
}

TEST(ControlTree, ASentMessageReachesItsDestinationAlone) {
  World world(22);
  for (int from = 0; from < 22; ++from) {
    for (int to = 0; to < 22; ++to) {
      world.received.clear();
      world[from].send(to, 7, 99, base::as_bytes("x"));
      world.pump(8);
      ASSERT_EQ(world.received.size(), 1U) << from << " to " << to;
      EXPECT_EQ(world.received[0].at, to);
      EXPECT_EQ(world.received[0].message.source, from);
      EXPECT_EQ(world.received[0].message.type, 7U);
      EXPECT_EQ(world.received[0].message.context, 99U);
      EXPECT_EQ(world.received[0].message.payload.size(), 1U);
    }
  }
}

TEST(ControlTree, AFloodReachesEveryOtherRankOnce) {
  for (const int from : {0, 1, 21}) {
    World world(22);
    world[from].flood(7, 1, {});
    world.pump();
    std::multiset<int> reached;
    for (const auto& received : world.received) reached.insert(received.at);
    std::multiset<int> expected;
    for (int rank = 0; rank < 22; ++rank) {
      if (rank != from) expected.insert(rank);
    }
    EXPECT_EQ(reached, expected);
  }
}

TEST(ControlTree, AllGatherGivesEveryMemberAllBytesInMembersOrder) {
  for (const auto& members : {all_ranks(22), std::vector<int>{17, 3, 0, 8, 21}, std::vector<int>{6, 5}}) {
    World world(22);
    std::vector<std::vector<std::vector<std::byte>>> results(22);
    const auto errors = world.on_threads(members, [&](int rank) {
      for (std::uint64_t sequence = 0; sequence < 3; ++sequence) {
        const std::string text = fmt::format("{} says {}", rank, sequence);
        const auto result =
            world[rank].all_gather(5, sequence, members, base::as_bytes(text), world.in(30 * second), {});
        std::vector<std::vector<std::byte>> expected;
        for (const int member : members) {
          const auto theirs = fmt::format("{} says {}", member, sequence);
          const auto bytes = base::as_bytes(theirs);
          expected.emplace_back(bytes.begin(), bytes.end());
        }
        EXPECT_EQ(result, expected) << rank;
      }
    });
    for (const auto& [rank, error] : errors) ADD_FAILURE() << rank << ": " << error.what();
  }
}

TEST(ControlTree, AllGatherNamesTheMemberThatDidNotCallToAll) {
  World world(6);
  const auto members = all_ranks(6);
  const auto errors = world.on_threads(
      {0, 1, 2, 3, 5}, [&](int rank) { world[rank].all_gather(5, 0, members, {}, world.in(second / 5), {}); });
  ASSERT_EQ(errors.size(), 5U);
  for (const auto& [rank, error] : errors) {
    EXPECT_EQ(error.code(), ErrorCode::deadline) << error.what();
    EXPECT_EQ(error.peer(), 4) << error.what();
    EXPECT_NE(error.message().find("rank 4 (host, pid 4) has not"), std::string::npos) << error.what();
  }
}

TEST(ControlTree, AllGatherEndsWhenAMemberFails) {
  World world(6);
  world.kill(5);
  const auto members = all_ranks(6);
  const auto errors = world.on_threads(
      {0, 1, 2, 3, 4}, [&](int rank) { world[rank].all_gather(5, 0, members, {}, world.in(30 * second), {}); });
  ASSERT_EQ(errors.size(), 5U);
  for (const auto& [rank, error] : errors) {
    EXPECT_EQ(error.code(), ErrorCode::rank_failed) << error.what();
    EXPECT_EQ(error.peer(), 5) << error.what();
  }
}

TEST(ControlTree, AllGatherPassesOnWhatTheCheckThrows) {
  World world(2);
  const std::vector<int> members{0, 1};
  const auto abort = [] { throw Error(ErrorCode::aborted, "stop"); };
  EXPECT_THROW(world[0].all_gather(1, 0, members, {}, base::never, abort), Error);
  EXPECT_THROW(world[1].all_gather(1, 0, members, {}, base::never, abort), Error);
}

TEST(ControlTree, AllGatherRefusesMembersWithoutTheCaller) {
  World world(3);
  const std::vector<int> others{1, 2};
  const std::vector<int> twice{0, 0};
  const std::vector<int> outside{0, 3};
  EXPECT_THROW(world[0].all_gather(1, 0, others, {}, base::never, {}), Error);
  EXPECT_THROW(world[0].all_gather(1, 0, twice, {}, base::never, {}), Error);
  EXPECT_THROW(world[0].all_gather(1, 0, outside, {}, base::never, {}), Error);
}

// A leaf, an interior rank, the root: every survivor hears of it once, also those whose way to the others is cut.
TEST(ControlTree, AFailedRankIsKnownToAllSurvivorsOnce) {
  for (const int dead : {21, 1, 0}) {
    World world(22);
    world.kill(dead);
    world.pump();
    for (int rank = 0; rank < 22; ++rank) {
      if (rank == dead) continue;
      const auto& failures = world.failures[static_cast<std::size_t>(rank)];
      ASSERT_EQ(failures.size(), 1U) << "rank " << rank << " of the death of " << dead;
      EXPECT_EQ(failures[0].first, dead);
      EXPECT_EQ(failures[0].second, fmt::format("rank {} (host, pid {}) closed its control connection", dead, dead));
    }
  }
}

TEST(ControlTree, AReasonGivenWhileLeavingReachesAll) {
  World world(22);
  world[5].leave_with_error("out of memory");
  world.kill(5);
  world.pump();
  for (int rank = 0; rank < 22; ++rank) {
    if (rank == 5) continue;
    const auto& failures = world.failures[static_cast<std::size_t>(rank)];
    ASSERT_EQ(failures.size(), 1U) << rank;
    EXPECT_EQ(failures[0].second, "rank 5 (host, pid 5) ended: out of memory");
  }
}

TEST(ControlTree, LeavingTogetherIsNoFailure) {
  for (const int size : {1, 2, 22}) {
    World world(size);
    std::atomic<int> left{0};
    const auto errors = world.on_threads(all_ranks(size), [&](int rank) {
      if (world[rank].leave(world.in(30 * second))) ++left;
    });
    EXPECT_TRUE(errors.empty());
    EXPECT_EQ(left, size);
    for (const auto& failures : world.failures) EXPECT_TRUE(failures.empty());
  }
}

TEST(ControlTree, AfterLeavingClosedLinksAreNoFailure) {
  World world(6);
  std::vector<std::thread> threads;
  std::atomic<int> left{0};
  for (int rank = 0; rank < 6; ++rank) {
    threads.emplace_back([&, rank] { left += world[rank].leave(world.in(30 * second)) ? 1 : 0; });
  }
  while (left < 6) world.pump(1);
  for (auto& thread : threads) thread.join();
  for (const int rank : {1, 5, 0, 2}) {
    world.kill(rank);
    world.pump();
  }
  for (const auto& failures : world.failures) EXPECT_TRUE(failures.empty());
}

TEST(ControlTree, ALeaveEndsAtItsDeadlineWhenSomebodyStays) {
  World world(3);
  const auto errors =
      world.on_threads({0, 1}, [&](int rank) { EXPECT_FALSE(world[rank].leave(world.in(second / 10))); });
  EXPECT_TRUE(errors.empty());
}

TEST(ControlTree, ARankThatLeftAloneIsNoFailureOfItsNeighbours) {
  World world(3);
  EXPECT_FALSE(world[1].leave(0));
  world.kill(1);
  world.pump();
  EXPECT_TRUE(world.failures[0].empty());
}

TEST(ControlTree, OnlyDirectNeighboursAccuseASilentRankAndAllLearnOfIt) {
  FakeClock clock;
  World world(22, 10 * second, clock);
  world.pump(4);
  for (int i = 0; i < 12; ++i) {
    clock.time += second;
    world.pump(4, {5});
    if (i < 9) {
      for (const auto& failures : world.failures) EXPECT_TRUE(failures.empty()) << "after " << i + 1 << " s";
    }
  }
  for (int rank = 0; rank < 22; ++rank) {
    if (rank == 5) continue;
    const auto& failures = world.failures[static_cast<std::size_t>(rank)];
    ASSERT_EQ(failures.size(), 1U) << rank;
    EXPECT_EQ(failures[0].first, 5);
    EXPECT_NE(failures[0].second.find("rank 5 (host, pid 5) was silent for 1"), std::string::npos);
  }
}

TEST(ControlTree, AWholeJobThatWasStoppedGoesOn) {
  FakeClock clock;
  World world(6, 10 * second, clock);
  for (int i = 0; i < 5; ++i) {
    world.pump(2);
    clock.time += 2 * second;
  }
  clock.time += 3600 * second;
  world[0].progress();  // the first to run again must not blame those that had no turn yet
  clock.time += second;
  world.pump(4);
  clock.time += second;
  world.pump(4);
  for (const auto& failures : world.failures) EXPECT_TRUE(failures.empty());
}

TEST(ControlTree, IdleRanksKeepEachOtherConvinced) {
  FakeClock clock;
  World world(6, 10 * second, clock);
  for (int i = 0; i < 100; ++i) {
    world.pump(1);
    clock.time += 2 * second;
  }
  for (const auto& failures : world.failures) EXPECT_TRUE(failures.empty());
}

TEST(ControlTree, ProgressWantsToBeCalledInTimeForTheNextHeartbeat) {
  FakeClock clock;
  World world(2, 8 * second, clock);
  EXPECT_LE(world[0].progress(), clock.now() + 2 * second);
  World quiet(2, 0, clock);
  EXPECT_EQ(quiet[0].progress(), base::never);
}

TEST(ControlTree, AMalformedFrameIsTheFailureOfTheNeighbourThatSentIt) {
  const auto frame = [](std::uint32_t type, int source, int destination, std::size_t payload) {
    static const std::vector<std::byte> zeros(16);
    return encode(ControlFrame{type, 0, source, destination, std::span(zeros).first(payload)});
  };
  const std::vector<std::vector<std::byte>> hostile{
      {},                            // shorter than its header
      frame(7, 1, 6, 0),             // a destination that does not exist
      frame(7, -1, 0, 0),            // a source that does not exist
      frame(7, 2, 0, 0),             // a source that is not behind this link
      frame(7, 0, 0, 0),             // this rank itself
      frame(7, 5, 1, 0),             // a frame that would go back
      frame(0x8000'0002, 1, -1, 3),  // a failure without a rank
      frame(0x8000'0005, 1, 0, 0),   // a release from below
      frame(0x8000'0006, 1, 0, 7),   // a part without a sequence
      frame(0x8000'0007, 1, 0, 11),  // a result without a count
      frame(0x8000'0008, 1, 0, 0),   // a query about nothing
      frame(0x8000'00ff, 1, 0, 0),   // an unknown type
  };
  for (std::size_t i = 0; i < hostile.size(); ++i) {
    World world(6);
    {
      const std::lock_guard lock(world.pipes.at({1, 0})->mutex);
      world.pipes.at({1, 0})->frames.push_back(hostile[i]);
    }
    world.pump();
    for (const int rank : {0, 1, 2, 5}) {
      const auto& failures = world.failures[static_cast<std::size_t>(rank)];
      ASSERT_EQ(failures.size(), 1U) << "frame " << i << " at rank " << rank;
      EXPECT_EQ(failures[0].first, 1);
      EXPECT_NE(failures[0].second.find("no control frame"), std::string::npos) << failures[0].second;
    }
    EXPECT_TRUE(world.received.empty());
  }
}

TEST(ControlTree, ItsOwnMessageTypesAreRefusedFromUsers) {
  World world(2);
  EXPECT_THROW(world[0].send(1, 0x8000'0001, 0, {}), Error);
  EXPECT_THROW(world[0].flood(0x8000'0000, 0, {}), Error);
  EXPECT_THROW(world[0].send(2, 1, 0, {}), Error);
}

TEST(ControlTree, WrongLinksAreRefused) {
  EXPECT_THROW(ControlTree(base::System::real(), 0, 2, {}, 0, {"a", "b"}), Error);
  EXPECT_THROW(ControlTree(base::System::real(), 0, 1, {}, 0, {}), Error);
}

// Rank 1 ends because of what rank 0 floods, before rank 0 has told rank 2: rank 2 hears the reason first.
TEST(ControlTree, NewsOfAReactionDoesNotOvertakeWhatItReactsTo) {
  World world(3);
  std::thread service;
  world.pipes[{0, 1}]->on_send = [&] {
    if (service.joinable()) return;
    world[1].leave_with_error("the flood");
    service = std::thread([&] { world[0].progress(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  world[0].flood(7, 1, {});
  service.join();
  std::vector<std::uint32_t> types;
  for (const auto& bytes : world.pipes[{0, 2}]->frames) types.push_back(decode_control_frame(bytes, 3).type);
  ASSERT_EQ(types.size(), 2U);
  EXPECT_EQ(types[0], 7U);
  EXPECT_NE(types[1], 7U);
}

}  // namespace
}  // namespace rondo::bootstrap
