// Splitting, closing, destroying, aborting, deadlines, and what an error leaves behind.
#include <atomic>
#include <cstdint>
#include <optional>
#include <ostream>
#include <thread>
#include <vector>

#include "communicator/even_calls.hpp"
#include "communicator/ranks.hpp"

namespace rondo {
namespace {

using std::chrono::milliseconds;

std::int32_t summed(Communicator& comm, std::int32_t value) {
  std::vector<std::int32_t> data(1, value);
  comm.all_reduce(std::span(data));
  return data[0];
}

TEST(Split, GroupsByColorAndOrdersByKeyThenRank) {
  with_ranks(6, [](Communicator& comm) {
    // Colors: even and odd; keys turn the order of the even ones.
    const bool even = comm.rank() % 2 == 0;
    auto part = comm.split({.color = even ? 7 : -7, .key = even ? -comm.rank() : 0, .name = {}});
    ASSERT_TRUE(part);
    EXPECT_EQ(part->size(), 3);
    EXPECT_EQ(part->rank(), even ? 2 - comm.rank() / 2 : comm.rank() / 2);
    EXPECT_EQ(summed(*part, comm.rank()), even ? 6 : 9);
    std::vector<std::int32_t> mine(1, comm.rank()), all(3);
    part->all_gather(std::span<const std::int32_t>(mine), std::span(all));
    EXPECT_EQ(all, even ? (std::vector<std::int32_t>{4, 2, 0}) : (std::vector<std::int32_t>{1, 3, 5}));
  });
}

TEST(Split, ARankWithoutColorGetsNone) {
  with_ranks(3, [](Communicator& comm) {
    SplitOptions options;
    if (comm.rank() == 1) options.color.reset();
    auto part = comm.split(options);
    EXPECT_EQ(part.has_value(), comm.rank() != 1);
    if (part) {
      EXPECT_EQ(summed(*part, 1), 2);
    }
    EXPECT_EQ(summed(comm, 1), 3);
  });
}

TEST(Split, NamesFollowTheParentUnlessGiven) {
  with_ranks(2, [](Communicator& comm) {
    auto plain = comm.split({.color = 4, .key = 0, .name = {}});
    auto named = comm.split({.color = 4, .key = 0, .name = "tensor"});
    ASSERT_TRUE(plain && named);
    EXPECT_EQ(plain->name(), "world/4");
    EXPECT_EQ(named->name(), "tensor");
  });
}

TEST(Split, ParentAndChildrenMayBeUsedInTurn) {
  with_ranks(4, [](Communicator& comm) {
    auto half = comm.split({.color = comm.rank() / 2, .key = 0, .name = {}});
    auto again = comm.split({.color = comm.rank() / 2, .key = 0, .name = {}});
    ASSERT_TRUE(half && again);
    for (int round = 0; round < 20; ++round) {
      ASSERT_EQ(summed(comm, round), 4 * round);
      ASSERT_EQ(summed(*half, round), 2 * round);
      ASSERT_EQ(summed(*again, round + 1), 2 * round + 2);
    }
  });
}

TEST(Split, OfASplit) {
  with_ranks(8, [](Communicator& comm) {
    auto half = comm.split({.color = comm.rank() / 4, .key = 0, .name = {}});
    ASSERT_TRUE(half);
    auto quarter = half->split({.color = half->rank() / 2, .key = -half->rank(), .name = {}});
    ASSERT_TRUE(quarter);
    EXPECT_EQ(quarter->size(), 2);
    EXPECT_EQ(quarter->rank(), 1 - comm.rank() % 2);
    EXPECT_EQ(summed(*quarter, comm.rank()), comm.rank() / 2 * 4 + 1);
    half->close();  // the quarter lives on
    EXPECT_EQ(summed(*quarter, 1), 2);
    EXPECT_EQ(summed(comm, 1), 8);
  });
}

TEST(Split, TheCollectivesAllWorkOnAChild) {
  with_ranks(5, [](Communicator& comm) {
    auto part = comm.split({.color = comm.rank() == 2 ? 1 : 0, .key = -comm.rank(), .name = {}});
    ASSERT_TRUE(part);
    std::vector<std::byte> room(room_bytes(4 * 30000 * 5));
    for (int c = 0; c <= static_cast<int>(Collective::scatter); ++c)
      for (const std::size_t count : {3U, 30000U})
        ASSERT_EQ(wrong_elements(*part, {static_cast<Collective>(c), DataType::float32, ReduceOp::sum, count, 0},
                                 room.data()),
                  0U)
            << name_of(static_cast<Collective>(c));
    // Windows of the world serve a child.
    Room window(*part, room_bytes(4 * 30000 * 5), true);
    ASSERT_EQ(
        wrong_elements(*part, {Collective::all_reduce, DataType::float32, ReduceOp::sum, 30000, 0}, window.data()), 0U);
    part->barrier();
  });
}

TEST(Close, RefusesFurtherCallsAndASecondClose) {
  with_ranks(3, [](Communicator& comm) {
    EXPECT_EQ(summed(comm, 1), 3);
    comm.close();
    std::string text;
    EXPECT_EQ(code_of([&] { comm.barrier(); }, &text), ErrorCode::invalid_usage);
    EXPECT_NE(text.find("closed"), std::string::npos) << text;
    EXPECT_EQ(code_of([&] { comm.close(); }), ErrorCode::invalid_usage);
    EXPECT_EQ(code_of([&] { comm.check(); }), ErrorCode::invalid_usage);
    EXPECT_EQ(code_of([&] { static_cast<void>(comm.split({})); }), ErrorCode::invalid_usage);
  });
}

TEST(Close, WaitsForWhatIsPending) {
  with_ranks(2, [](Communicator& comm) {
    std::vector<std::int32_t> data(300000, 1);
    const Stream stream;
    comm.all_reduce(std::span(data), {}, {&stream, {}});
    comm.close();
    EXPECT_EQ(data, std::vector<std::int32_t>(300000, 2));
  });
}

TEST(Close, DestroyingInsteadIsFineInAnyOrderOfRanks) {
  for (int round = 0; round < 10; ++round) with_ranks(3, [](Communicator& comm) { EXPECT_EQ(summed(comm, 2), 6); });
}

TEST(Close, ARankThatUnwindsEndsItsPeersCalls) {
  std::vector<Communicator> ranks = Communicator::create_local(2, test_config());
  std::thread unwinding([&] {
    try {
      const Communicator comm = std::move(ranks[0]);
      throw std::runtime_error("the program's own");
    } catch (const std::runtime_error&) {
    }
  });
  Communicator comm = std::move(ranks[1]);
  const ErrorCode code = code_of([&] { comm.barrier(); });
  EXPECT_TRUE(code == ErrorCode::aborted || code == ErrorCode::rank_failed) << name_of(code);
  unwinding.join();
}

TEST(Close, MovedFromCommunicatorsAreEmptyAndAssignmentClosesTheOld) {
  with_ranks(2, [](Communicator& comm) {
    auto part = comm.split({});
    ASSERT_TRUE(part);
    Communicator moved = std::move(*part);
    EXPECT_EQ(part->size(), 0);  // NOLINT(bugprone-use-after-move): what moving leaves is defined
    EXPECT_EQ(summed(moved, 1), 2);
    auto other = comm.split({});
    ASSERT_TRUE(other);
    moved = std::move(*other);
    EXPECT_EQ(summed(moved, 3), 6);
  });
}

TEST(Abort, FromAnotherThreadEndsTheWaitsOfAllRanks) {
  std::atomic<int> waiting{0};
  with_ranks(4, [&](Communicator& comm) {
    if (comm.rank() == 3) {
      while (waiting.load() < 3) std::this_thread::yield();
      std::thread other([&] { comm.abort("the user pressed stop"); });
      other.join();
      EXPECT_EQ(code_of([&] { comm.barrier(); }), ErrorCode::aborted);
      return;
    }
    waiting.fetch_add(1);
    std::string text;
    std::vector<std::int32_t> data(100);
    EXPECT_EQ(code_of(
                  [&] {
                    if (comm.rank() == 0) comm.barrier();
                    else comm.receive(std::span(data), 3);
                  },
                  &text),
              ErrorCode::aborted);
    EXPECT_NE(text.find("the user pressed stop"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 3"), std::string::npos) << text;
  });
}

// A rank may hear of the abort before its own split has returned: again and again, to meet that moment.
TEST(Abort, OfAChildLeavesTheParent) {
  with_ranks(3, [](Communicator& comm) {
    for (int round = 0; round < 200; ++round) {
      auto part = comm.split({});
      ASSERT_TRUE(part);
      if (comm.rank() == round % 3) part->abort("only this one");
      ASSERT_EQ(code_of([&] { part->barrier(); }), ErrorCode::aborted);
      ASSERT_EQ(summed(comm, 1), 3);
    }
  });
}

// A destructor cannot throw, so it warns; but only of what nobody has been told.
std::string warnings_of_destruction(bool through_work) {
  testing::internal::CaptureStderr();
  {
    std::vector<Communicator> ranks = Communicator::create_local(2, test_config());
    std::vector<float> data(10, 1.0F);
    const Stream stream;
    const Work work = ranks[0].all_reduce(std::span(data), {}, {&stream, {}});
    ranks[1].abort("for the test");
    if (through_work) {
      EXPECT_EQ(code_of([&] { work.wait(); }), ErrorCode::aborted);
    } else {
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (work.status() == WorkStatus::pending && std::chrono::steady_clock::now() < limit)
        std::this_thread::yield();
      EXPECT_EQ(work.status(), WorkStatus::failed);
    }
  }
  return testing::internal::GetCapturedStderr();
}
TEST(Errors, ThatNobodyWasToldAreWarnedAboutByTheDestructor) {
  const std::string text = warnings_of_destruction(false);
  EXPECT_NE(text.find("no call reported"), std::string::npos) << text;
  EXPECT_NE(text.find("for the test"), std::string::npos) << text;
}
TEST(Errors, ThatWorkReportedAreNotWarnedAboutAgain) { EXPECT_EQ(warnings_of_destruction(true), ""); }

TEST(Errors, PoisonIsFinalAndTheSameForEveryCall) {
  with_ranks(2, [](Communicator& comm) {
    std::string first, text;
    if (comm.rank() == 0) comm.abort("first");
    EXPECT_EQ(code_of([&] { comm.barrier(); }, &first), ErrorCode::aborted);
    comm.abort("second");
    std::vector<std::int32_t> data(4);
    const Stream stream;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(code_of([&] { comm.check(); }, &text), ErrorCode::aborted);
      EXPECT_EQ(text, first);
      EXPECT_EQ(code_of([&] { comm.all_reduce(std::span(data), {}, {&stream, {}}); }), ErrorCode::aborted);
      EXPECT_EQ(code_of([&] { comm.send(std::span(data), 0); }), ErrorCode::aborted);
      EXPECT_EQ(code_of([&] { static_cast<void>(comm.split({})); }), ErrorCode::aborted);
      EXPECT_EQ(code_of([&] { comm.allocate<float>(8); }), ErrorCode::aborted);
      EXPECT_EQ(code_of([&] { comm.close(); }), ErrorCode::aborted);
    }
  });
}

TEST(Deadline, NamesTheRankThatDidNotComeAndItsLastCall) {
  std::atomic<int> ended{0};
  with_ranks(3, [&](Communicator& comm) {
    EXPECT_EQ(summed(comm, 1), 3);
    if (comm.rank() == 2) {
      while (ended.load() < 2) std::this_thread::yield();
      EXPECT_EQ(code_of([&] { comm.barrier(); }), ErrorCode::deadline);
      return;
    }
    std::vector<std::int32_t> data(1000);
    std::string text;
    EXPECT_EQ(code_of(
                  [&] {
                    comm.all_reduce(std::span(data), {}, {nullptr, milliseconds(100)});
                  },
                  &text),
              ErrorCode::deadline);
    ended.fetch_add(1);
    EXPECT_NE(text.find("rank 2 has not called it (its last was #1)"), std::string::npos) << text;
    EXPECT_NE(text.find("all_reduce #2 (1000 x int32, sum)"), std::string::npos) << text;
    EXPECT_NE(text.find("0.1 s"), std::string::npos) << text;
  });
}

TEST(Deadline, OfTheCommunicatorHoldsForCallsWithout) {
  Config config;
  config.deadline = milliseconds(80);
  std::atomic<bool> ended{false};
  with_ranks(
      2,
      [&](Communicator& comm) {
        if (comm.rank() == 0) {
          EXPECT_EQ(code_of([&] { comm.barrier(); }), ErrorCode::deadline);
          ended.store(true);
        } else {
          while (!ended.load()) std::this_thread::yield();
        }
      },
      config);
}

TEST(Deadline, OfAnAsynchronousCallEndsItWithoutAnybodyWaiting) {
  std::atomic<bool> ended{false};
  with_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      while (!ended.load()) std::this_thread::yield();
      return;
    }
    const Stream stream;
    std::vector<std::int32_t> data(10);
    const Work work = comm.all_reduce(std::span(data), {}, {&stream, milliseconds(50)});
    while (work.status() == WorkStatus::pending) std::this_thread::yield();
    EXPECT_EQ(code_of([&] { work.wait(); }), ErrorCode::deadline);
    ended.store(true);
  });
}

struct Difference {
  const char* name;
  void (*call)(Communicator& comm, bool odd, float* a, float* b);
  const char* texts[2];  // what the error must say of either side
  friend void PrintTo(const Difference& d, std::ostream* out) { *out << d.name; }
};
const Difference differences[] = {
    {"operation",
     [](Communicator& comm, bool odd, float* a, float* b) {
       if (odd) comm.all_reduce(a, b, 8, DataType::float32);
       else comm.broadcast(a, b, 8, DataType::float32, 0);
       comm.barrier();  // the root only sends
     },
     {"all_reduce", "broadcast"}},
    {"count",
     [](Communicator& comm, bool odd, float* a, float* b) { comm.all_reduce(a, b, odd ? 8 : 9, DataType::float32); },
     {"8 x float32", "9 x float32"}},
    {"algorithm",
     [](Communicator& comm, bool odd, float* a, float* b) {
       comm.all_reduce(a, b, odd ? 8 : 100000, DataType::float32);
     },
     {"8 x float32", "100000 x float32"}},
    {"type",
     [](Communicator& comm, bool odd, float* a, float* b) {
       comm.all_reduce(a, b, 8, odd ? DataType::float32 : DataType::int32);
     },
     {"float32", "int32"}},
    {"op",
     [](Communicator& comm, bool odd, float* a, float* b) {
       comm.all_reduce(a, b, 8, DataType::float32, odd ? ReduceOp::sum : ReduceOp::max);
     },
     {"sum", "max"}},
    {"root",
     [](Communicator& comm, bool odd, float* a, float* b) {
       comm.broadcast(a, b, 8, DataType::float32, odd ? 1 : 0);
       comm.barrier();
     },
     {"root 0", "root 1"}},
    {"order",
     [](Communicator& comm, bool odd, float* a, float* b) {
       for (int i = 0; i < 2; ++i)
         if ((i == 0) == odd) comm.barrier();
         else comm.all_gather(a, b, 8, DataType::float32);
     },
     {"barrier", "all_gather"}},
    {"collectives of the control tree",
     [](Communicator& comm, bool odd, float*, float*) {
       if (odd) static_cast<void>(comm.split({}));
       else static_cast<void>(comm.allocate<float>(8));
     },
     {"split", "allocate"}},
    {"bytes of a window",
     [](Communicator& comm, bool odd, float*, float*) { static_cast<void>(comm.allocate<float>(odd ? 8 : 16)); },
     {"32", "64"}},
    {"counts of an uneven form",
     [](Communicator& comm, bool odd, float* a, float* b) {
       const std::vector<std::size_t> counts{2, odd ? 3U : 2U, 1};
       comm.reduce_scatter_v(a, b, counts, DataType::float32);
       comm.barrier();
     },
     {"reduce_scatter_v #1", "hash"}},
    {"close during a collective",
     [](Communicator& comm, bool odd, float* a, float* b) {
       if (odd) comm.close();
       else comm.all_reduce(a, b, 8, DataType::float32);
     },
     {"called all_reduce #1 (8 x float32, sum)", "rank 1 called close after no collective"}},
    {"split during a collective",
     [](Communicator& comm, bool odd, float* a, float* b) {
       comm.barrier();
       if (odd) static_cast<void>(comm.split({}));
       else comm.all_gather(a, b, 8, DataType::float32);
     },
     {"called all_gather #2 (8 x float32)", "rank 1 called split after collective #1"}},
    {"allocate during a collective waited for",
     [](Communicator& comm, bool odd, float* a, float* b) {
       Stream stream;
       if (odd) static_cast<void>(comm.allocate<float>(8));
       else comm.all_reduce(a, b, 8, DataType::float32, {}, {.stream = &stream}).wait();
     },
     {"called all_reduce #1 (8 x float32, sum)", "rank 1 called allocate after no collective"}},
    {"a collective during close",  // which waits for the collective before it says goodbye
     [](Communicator& comm, bool odd, float* a, float* b) {
       Stream stream;
       if (odd) {
         static_cast<void>(comm.split({}));
       } else {
         comm.all_reduce(a, b, 8, DataType::float32, {}, {.stream = &stream});
         comm.close();
       }
     },
     {"called all_reduce #1 (8 x float32, sum)", "rank 1 called split after no collective"}},
    {"sent counts",
     [](Communicator& comm, bool odd, float* a, float* b) {
       const std::vector<std::size_t> at{0, 10, 20};
       const std::vector<std::size_t> two{2, 2, 2};
       const std::vector<std::size_t> sent{odd ? 3U : 2U, 2, 2};
       comm.all_to_all_v(a, sent, at, b, two, at, DataType::float32);
       comm.barrier();
     },
     {"rank 1 called it to send 3 elements to rank 0", "rank 0 called it to receive 2 from rank 1"}},
    {"nothing sent where something is awaited",
     [](Communicator& comm, bool odd, float* a, float* b) {
       const std::vector<std::size_t> at{0, 10, 20};
       const std::vector<std::size_t> two{2, 2, 2};
       const std::vector<std::size_t> sent{2, 2, odd ? 0U : 2U};
       comm.all_to_all_v(a, sent, at, b, two, at, DataType::float32);
       comm.barrier();
     },
     {"rank 1 called it to send 0 elements to rank 2", "rank 2 called it to receive 2 from rank 1"}},
    {"something sent where nothing is awaited",
     [](Communicator& comm, bool odd, float* a, float* b) {
       const std::vector<std::size_t> at{0, 10, 20};
       const std::vector<std::size_t> none{0, 0, 0};
       const std::vector<std::size_t> sent{odd ? 50'000U : 0U, 0, 0};
       comm.all_to_all_v(a, sent, at, b, none, at, DataType::float32);
       comm.all_to_all_v(a, sent, at, b, none, at, DataType::float32);
       comm.barrier();
     },
     {"all_to_all_v #1 (float32): rank 1 called it to send 50000 elements to rank 0",
      "rank 0 called it to receive 0 from rank 1"}},
    {"gathered counts",
     [](Communicator& comm, bool odd, float* a, float* b) {
       const std::vector<std::size_t> at{0, 50'000, 95'000};
       const std::vector<std::size_t> counts{2, 40'001, 2};
       comm.gather_v(a, odd ? 40'000 : 2, b, counts, at, DataType::float32, 0);
       comm.barrier();
     },
     {"rank 1 called it to send 40000 elements to rank 0", "rank 0 called it to receive 40001 from rank 1"}},
    {"scattered counts",
     [](Communicator& comm, bool odd, float* a, float* b) {
       const std::vector<std::size_t> at{0, 10, 20};
       const std::vector<std::size_t> counts{2, 2, 2};
       comm.scatter_v(a, counts, at, b, odd ? 3 : 2, DataType::float32, 2);
       comm.barrier();
     },
     {"rank 2 called it to send 2 elements to rank 1", "rank 1 called it to receive 3 from rank 2"}},
};

class Mismatch : public testing::TestWithParam<Difference> {};

TEST_P(Mismatch, IsNamedWithBothSidesOnAllRanks) {
  const Difference& difference = GetParam();
  with_ranks(3, [&](Communicator& comm) {
    std::vector<float> a(100000), b(100000);
    std::string text;
    ASSERT_EQ(code_of([&] { difference.call(comm, comm.rank() % 2 == 1, a.data(), b.data()); }, &text),
              ErrorCode::mismatch)
        << text;
    for (const char* side : difference.texts) EXPECT_NE(text.find(side), std::string::npos) << text;
    EXPECT_EQ(code_of([&] { comm.barrier(); }), ErrorCode::mismatch);
  });
}

INSTANTIATE_TEST_SUITE_P(Communicator, Mismatch, testing::ValuesIn(differences), [](const auto& tested) {
  std::string name = tested.param.name;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
});

// Not the same order, but it ends well, and so it must: nobody goes on only after what the other has not called.
TEST(Exchanges, MayComeBeforeACollectiveThatThePeerDoesNotWaitFor) {
  with_ranks(2, [](Communicator& comm) {
    Stream stream;
    std::vector<float> a(8, 1.0F), b(8);
    const auto all_reduce = [&] {
      return comm.all_reduce(a.data(), b.data(), 8, DataType::float32, {}, {.stream = &stream});
    };
    if (comm.rank() == 0) {
      const Work work = all_reduce();
      EXPECT_FALSE(work.wait_for(std::chrono::milliseconds(1200)));  // longer than it takes to be judged
      EXPECT_TRUE(comm.split({}).has_value());
      work.wait();
    } else {
      EXPECT_TRUE(comm.split({}).has_value());
      all_reduce().wait();
    }
    EXPECT_EQ(b, std::vector<float>(8, 2.0F));
  });
}

// As above, behind an operation of the queue: its own deadline, as short as the wait, has not begun to count.
TEST(Exchanges, MayComeBeforeACollectiveWhoseDeadlineHasNotBegun) {
  with_ranks(3, [](Communicator& comm) {
    Stream stream;
    std::vector<float> a(8, 1.0F), b(8), c(8);
    const auto all_reduce = [&](std::vector<float>& to, std::chrono::milliseconds deadline) {
      return comm.all_reduce(a.data(), to.data(), 8, DataType::float32, {}, {.stream = &stream, .deadline = deadline});
    };
    if (comm.rank() == 0) {
      all_reduce(b, std::chrono::seconds(20));
      const Work second = all_reduce(c, std::chrono::milliseconds(1200));
      EXPECT_FALSE(second.wait_for(std::chrono::milliseconds(1200)));
      EXPECT_TRUE(comm.split({}).has_value());
      second.wait();
    } else {
      EXPECT_TRUE(comm.split({}).has_value());
      all_reduce(b, std::chrono::seconds(20));
      all_reduce(c, std::chrono::seconds(20)).wait();
    }
    EXPECT_EQ(c, std::vector<float>(8, 3.0F));
  });
}

// A rank that leaves a block while its peers are in the world's collective: who waits is told where it is.
TEST(Exchanges, OfAnotherCommunicatorAreNamedWhenADeadlinePasses) {
  Config config = test_config();
  config.deadline = std::chrono::seconds(2);
  std::string text;
  with_ranks(
      2,
      [&](Communicator& comm) {
        auto half = comm.split({.name = "half"});
        if (comm.rank() == 1) {
          try {  // ends well or not, as rank 0 leaves its half before or after the world has failed here
            half->close();
          } catch (const Error&) {
          }
        } else {
          EXPECT_EQ(code_of([&] { comm.barrier({.deadline = std::chrono::milliseconds(600)}); }, &text),
                    ErrorCode::deadline);
        }
      },
      config);
  EXPECT_NE(text.find("rank 1 has not called it (its last was #0, and it is in close of half)"), std::string::npos)
      << text;
}

TEST(Exchanges, AreRefusedWhileThisThreadsGroupIsPending) {
  with_ranks(2, [](Communicator& comm) {
    {
      Group group;
      EXPECT_TRUE(comm.split({}).has_value());  // nothing is recorded yet
      comm.barrier();
      EXPECT_EQ(code_of([&] { static_cast<void>(comm.split({})); }), ErrorCode::invalid_usage);
      EXPECT_EQ(code_of([&] { comm.allocate<float>(8); }), ErrorCode::invalid_usage);
      EXPECT_EQ(code_of([&] { comm.close(); }), ErrorCode::invalid_usage);
    }
    comm.barrier();
  });
}

// Two threads of a rank: one is in a split that the peer's thread begins later, the other in a collective.
TEST(Exchanges, MayRunBesideCollectivesOfAnotherThread) {
  with_ranks(2, [](Communicator& comm) {
    std::thread splitting([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(comm.rank() == 0 ? 0 : 100));
      EXPECT_TRUE(comm.split({}).has_value());
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(comm.rank() == 0 ? 200 : 0));
    comm.barrier();
    splitting.join();
  });
}

}  // namespace
}  // namespace rondo
