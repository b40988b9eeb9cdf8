// Asynchronous calls: Work, streams and groups.
#include <atomic>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

#include "communicator/even_calls.hpp"
#include "communicator/ranks.hpp"

namespace rondo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::int32_t> filled(std::size_t count, std::int32_t value) {
  return std::vector<std::int32_t>(count, value);
}

TEST(AsynchronousWork, ADefaultWorkAndThatOfABlockingCallAreCompleted) {
  const Work none;
  EXPECT_EQ(none.status(), WorkStatus::completed);
  EXPECT_TRUE(none.wait_for(seconds(0)));
  EXPECT_EQ(none.error(), nullptr);
  EXPECT_EQ(none.source(), -1);
  with_ranks(2, [](Communicator& comm) {
    auto data = filled(4, 1);
    EXPECT_EQ(comm.all_reduce(std::span(data)).status(), WorkStatus::completed);
  });
}

TEST(AsynchronousWork, IsPendingUntilThePeersComeAndThenHasTheValues) {
  std::atomic<bool> looked{false};
  with_ranks(2, [&](Communicator& comm) {
    auto data = filled(1000, comm.rank() + 1);
    const Stream stream;
    if (comm.rank() == 0) {
      const Work work = comm.all_reduce(std::span(data), {}, {&stream, {}});
      EXPECT_FALSE(work.wait_for(milliseconds(5)));
      EXPECT_EQ(work.status(), WorkStatus::pending);
      looked.store(true);
      work.wait();
      EXPECT_EQ(work.status(), WorkStatus::completed);
      EXPECT_TRUE(work.wait_for(seconds(0)));
    } else {
      while (!looked.load()) std::this_thread::yield();
      comm.all_reduce(std::span(data), {}, {&stream, {}}).wait();
    }
    EXPECT_EQ(data, filled(1000, 3));
  });
}

TEST(AsynchronousWork, CompletesWithoutAnybodyWaiting) {
  with_ranks(3, [&](Communicator& comm) {
    auto data = filled(100000, 1);
    const Stream stream;
    const Work work = comm.all_reduce(std::span(data), {}, {&stream, {}});
    while (work.status() == WorkStatus::pending) std::this_thread::yield();
    EXPECT_EQ(data, filled(100000, 3));
  });
}

TEST(AsynchronousWork, TellsItsCallbacksOnceAndInOrderWhenItHasEnded) {
  with_ranks(2, [](Communicator& comm) {
    auto data = filled(1000, 1);
    const Stream stream;
    std::vector<int> called;
    std::promise<WorkStatus> ended;
    if (comm.rank() == 1) std::this_thread::sleep_for(milliseconds(20));
    const Work work = comm.all_reduce(std::span(data), {}, {&stream, {}});
    work.on_end([&] { called.push_back(1); });
    work.on_end([&, work] {
      called.push_back(2);
      ended.set_value(work.status());
    });
    EXPECT_EQ(ended.get_future().get(), WorkStatus::completed);  // nobody waits for the work
    EXPECT_EQ(data, filled(1000, 2));
    work.on_end([&] { called.push_back(3); });
    EXPECT_EQ(called, (std::vector<int>{1, 2, 3}));
    bool at_once = false;
    comm.barrier().on_end([&] { at_once = true; });
    EXPECT_TRUE(at_once);
  });
}

TEST(AsynchronousWork, TellsItsCallbacksOfAnErrorToo) {
  with_ranks(2, [](Communicator& comm) {
    auto data = filled(8, 1);
    const Stream stream;
    std::promise<WorkStatus> ended;
    if (comm.rank() == 1) return comm.abort();
    try {
      const Work work = comm.all_reduce(std::span(data), {}, {&stream, {}});
      work.on_end([&ended, work] { ended.set_value(work.status()); });
      EXPECT_EQ(ended.get_future().get(), WorkStatus::failed);
      EXPECT_EQ(code_of([&] { work.wait(); }), ErrorCode::aborted);
    } catch (const Error& error) {  // the abort came before the call
      EXPECT_EQ(error.code(), ErrorCode::aborted);
    }
  });
}

TEST(AsynchronousWork, MayBeWaitedForBySeveralThreads) {
  with_ranks(2, [&](Communicator& comm) {
    for (int round = 0; round < 20; ++round) {
      auto data = filled(5000, 1);
      const Stream stream;
      const Work work = comm.all_reduce(std::span(data), {}, {&stream, {}});
      std::thread other([copy = work] { copy.wait(); });
      work.wait();
      EXPECT_EQ(data, filled(5000, 2));
      other.join();
    }
  });
}

TEST(AsynchronousWork, CarriesTheErrorAndOutlivesItsCommunicator) {
  std::vector<Work> works(2);
  std::promise<void> issued;
  const std::future<void> was_issued = issued.get_future();
  with_ranks(2, [&](Communicator& comm) {
    auto data = filled(4, 1);
    const Stream stream;
    if (comm.rank() == 0) {
      works[0] = comm.all_reduce(std::span(data), {}, {&stream, {}});
      issued.set_value();
      EXPECT_EQ(code_of([&] { works[0].wait(); }), ErrorCode::aborted);
    } else {
      was_issued.wait_for(seconds(10));  // an abort before would refuse the call itself
      comm.abort("enough");
    }
  });
  EXPECT_EQ(works[0].status(), WorkStatus::failed);
  std::string text;
  EXPECT_EQ(code_of([&] { std::rethrow_exception(works[0].error()); }, &text), ErrorCode::aborted);
  EXPECT_NE(text.find("enough"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { works[0].wait(); }), ErrorCode::aborted);
}

TEST(Streams, RunInOrder) {
  with_ranks(3, [&](Communicator& comm) {
    const Stream stream;
    auto data = filled(10000, 1);
    // Each reads what the one before wrote.
    for (int round = 0; round < 8; ++round) comm.all_reduce(std::span(data), {}, {&stream, {}});
    stream.synchronize();
    EXPECT_EQ(data, filled(10000, 6561));
  });
}

TEST(Streams, OneOfAnotherWorldIsRefusedAndBothStayUsable) {
  std::vector<Communicator> one = Communicator::create_local(1), other = Communicator::create_local(1);
  const Stream stream;
  auto data = filled(10, 3);
  one[0].all_reduce(std::span(data), {}, {&stream, {}}).wait();
  std::string text;
  EXPECT_EQ(code_of([&] { other[0].all_reduce(std::span(data), {}, {&stream, {}}); }, &text), ErrorCode::invalid_usage);
  EXPECT_NE(text.find("another world"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { other[0].receive(std::span(data), 0, 0, {&stream, {}}); }), ErrorCode::invalid_usage);
  other[0].all_reduce(std::span(data));
  one[0].all_reduce(std::span(data), {}, {&stream, {}}).wait();
  EXPECT_EQ(data, filled(10, 3));
  // Once its world has ended, the stream may serve another.
  one.clear();
  other[0].all_reduce(std::span(data), {}, {&stream, {}}).wait();
  stream.synchronize();
}

TEST(Streams, SynchronizeMayRunWhileAnotherThreadIssues) {
  with_ranks(2, [&](Communicator& comm) {
    const Stream stream;
    auto data = filled(100, 1);
    std::atomic<bool> issued{false};
    std::thread waiter([&] {
      while (!issued.load()) stream.synchronize();
    });
    for (int round = 0; round < 10; ++round) comm.all_reduce(std::span(data), {}, {&stream, {}});
    issued.store(true);
    waiter.join();
    stream.synchronize();
    EXPECT_EQ(data, filled(100, 1024));
  });
}

// What a group has recorded on a stream is its tail before it may run.
TEST(Streams, SynchronizeWaitsForWhatAnotherThreadsGroupHasRecorded) {
  with_ranks(2, [&](Communicator& comm) {
    const Stream stream;
    auto data = filled(100, 1);
    std::atomic<bool> waiting{false}, submitting{false};
    std::thread waiter;
    {
      Group group;
      comm.all_reduce(std::span(data), {}, {&stream, {}});
      waiter = std::thread([&] {
        waiting.store(true);
        stream.synchronize();
        EXPECT_TRUE(submitting.load());
      });
      while (!waiting.load()) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      submitting.store(true);
    }
    waiter.join();
    EXPECT_EQ(data, filled(100, 2));
  });
}

TEST(Streams, SeveralStreamsOfOneCommunicatorOverlap) {
  with_ranks(3, [&](Communicator& comm) {
    const Stream first, second;
    auto a = filled(50000, 1), b = filled(70, 2);
    std::vector<Work> works;
    for (int round = 0; round < 6; ++round) {
      works.push_back(comm.all_reduce(std::span(a), {}, {&first, {}}));
      works.push_back(comm.all_reduce(std::span(b), ReduceOp::max, {&second, {}}));
    }
    second.synchronize();
    first.synchronize();
    EXPECT_EQ(a, filled(50000, 729));
    EXPECT_EQ(b, filled(70, 2));
    for (const Work& w : works) EXPECT_EQ(w.status(), WorkStatus::completed);
  });
}

// A receive that cannot complete on one stream holds up neither the other stream nor blocking calls.
TEST(Streams, APendingReceiveDoesNotHoldUpOtherStreams) {
  with_ranks(2, [&](Communicator& comm) {
    const Stream waiting, busy;
    auto got = filled(3, 0), data = filled(10, 1);
    const int other = 1 - comm.rank();
    const Work receive = comm.receive(std::span(got), other, 5, {&waiting, {}});
    comm.all_reduce(std::span(data), {}, {&busy, {}}).wait();
    comm.all_reduce(std::span(data));
    EXPECT_EQ(receive.status(), WorkStatus::pending);
    comm.barrier();
    comm.send(std::span(data).first(3), other, 5, {&busy, {}});
    receive.wait();
    EXPECT_EQ(got, filled(3, 4));
    busy.synchronize();
  });
}

TEST(Streams, BlockingCallsComeAfterWhatIsPending) {
  with_ranks(2, [&](Communicator& comm) {
    const Stream stream;
    auto data = filled(200000, 1);
    comm.all_reduce(std::span(data), {}, {&stream, {}});
    comm.all_reduce(std::span(data));  // collectives run in the order of issue
    EXPECT_EQ(data, filled(200000, 4));
  });
}

TEST(Streams, SynchronizeThrowsTheFirstError) {
  std::promise<void> issued;
  const std::future<void> was_issued = issued.get_future();
  with_ranks(2, [&](Communicator& comm) {
    const Stream stream;
    auto data = filled(4, 1);
    stream.synchronize();  // nothing was issued
    if (comm.rank() == 0) {
      comm.all_reduce(std::span(data), {}, {&stream, {}});
      issued.set_value();
      EXPECT_EQ(code_of([&] { stream.synchronize(); }), ErrorCode::aborted);
    } else {
      was_issued.wait_for(seconds(10));  // an abort before would refuse the call itself
      comm.abort();
    }
  });
}

TEST(Groups, SeveralCollectivesStartTogether) {
  with_ranks(3, [&](Communicator& comm) {
    auto a = filled(100, 1), b = filled(100000, comm.rank()), c = filled(3, comm.rank());
    {
      Group group;
      const Work work = comm.all_reduce(std::span(a));
      comm.all_reduce(std::span(b), ReduceOp::max);
      comm.broadcast(std::span(c), 1);
      EXPECT_EQ(work.status(), WorkStatus::pending);
      group.submit();
      EXPECT_EQ(work.status(), WorkStatus::completed);
    }
    EXPECT_EQ(a, filled(100, 3));
    EXPECT_EQ(b, filled(100000, 2));
    EXPECT_EQ(c, filled(3, 1));
  });
}

TEST(Groups, SendAndReceiveAmongAllRanksNeverDeadlock) {
  for (const int n : {1, 2, 3, 5, 8})
    with_ranks(n, [&](Communicator& comm) {
      constexpr std::size_t count = 60000;  // far past what a connection buffers
      std::vector<std::vector<std::int32_t>> to, from(static_cast<std::size_t>(n), filled(count, -1));
      for (int r = 0; r < n; ++r) to.push_back(filled(count, 100 * comm.rank() + r));
      {
        const Group group;
        for (int r = 0; r < n; ++r) comm.send(std::span(to[static_cast<std::size_t>(r)]), r);
        for (int r = 0; r < n; ++r) comm.receive(std::span(from[static_cast<std::size_t>(r)]), r);
      }
      for (int r = 0; r < n; ++r) ASSERT_EQ(from[static_cast<std::size_t>(r)], filled(count, 100 * r + comm.rank()));
    });
}

TEST(Groups, NestAndSubmitWithTheOutermost) {
  with_ranks(2, [&](Communicator& comm) {
    auto a = filled(10, 1), b = filled(10, 1);
    Group outer;
    Work work;
    {
      const Group inner;
      work = comm.all_reduce(std::span(a));
    }
    EXPECT_EQ(work.status(), WorkStatus::pending);
    comm.all_reduce(std::span(b));
    outer.submit();
    EXPECT_EQ(a, filled(10, 2));
    EXPECT_EQ(b, filled(10, 2));
  });
}

TEST(Groups, MixCommunicatorsInDifferentOrders) {
  with_ranks(4, [&](Communicator& comm) {
    auto half = comm.split({.color = comm.rank() % 2, .key = 0, .name = {}});
    ASSERT_TRUE(half);
    auto a = filled(5000, 1), b = filled(5000, 1);
    for (int round = 0; round < 5; ++round) {
      const Group group;
      if (comm.rank() < 2) {
        comm.all_reduce(std::span(a));
        half->all_reduce(std::span(b));
      } else {
        half->all_reduce(std::span(b));
        comm.all_reduce(std::span(a));
      }
    }
    EXPECT_EQ(a, filled(5000, 1024));
    EXPECT_EQ(b, filled(5000, 32));
  });
}

TEST(Groups, MaySubmitWhileAStreamIsPending) {
  with_ranks(2, [&](Communicator& comm) {
    const Stream stream;
    auto a = filled(300000, 1), b = filled(5, 1), c = filled(5, 7);
    comm.all_reduce(std::span(a), {}, {&stream, {}});
    {
      const Group group;
      comm.all_reduce(std::span(b));
      comm.all_reduce(std::span(a), {}, {&stream, {}});
      comm.broadcast(std::span(c), 0);
    }
    EXPECT_EQ(b, filled(5, 2));
    stream.synchronize();
    EXPECT_EQ(a, filled(300000, 4));
  });
}

TEST(Groups, WaitingInsideIsRefusedAndTheGroupStaysUsable) {
  with_ranks(2, [&](Communicator& comm) {
    const Stream stream;
    auto data = filled(100, 1);
    Work work;
    std::string text;
    {
      Group group;
      work = comm.all_reduce(std::span(data), {}, {&stream, {}});
      EXPECT_EQ(code_of([&] { work.wait(); }, &text), ErrorCode::invalid_usage);
      EXPECT_EQ(code_of([&] { stream.synchronize(); }), ErrorCode::invalid_usage);
    }
    EXPECT_NE(text.find("inside a group"), std::string::npos) << text;
    work.wait();
    EXPECT_EQ(data, filled(100, 2));
  });
}

TEST(Groups, AnEmptyGroupAndARepeatedSubmitDoNothing) {
  Group group;
  group.submit();
  group.submit();
}

TEST(Groups, ARefusedCallLeavesTheOthersOfTheGroup) {
  with_ranks(2, [&](Communicator& comm) {
    auto a = filled(10, 1);
    {
      const Group group;
      comm.all_reduce(std::span(a));
      EXPECT_EQ(code_of([&] { comm.broadcast(std::span(a), 9); }), ErrorCode::invalid_argument);
    }
    EXPECT_EQ(a, filled(10, 2));
    // The exception may leave the group, too: what was issued still starts, for peers wait for it.
    try {
      const Group group;
      comm.all_reduce(std::span(a));
      comm.broadcast(std::span(a), -1);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
    EXPECT_EQ(a, filled(10, 4));
  });
}

TEST(Groups, ThrowTheFirstError) {
  with_ranks(2, [&](Communicator& comm) {
    auto a = filled(10, 1);
    if (comm.rank() == 1) {
      comm.abort();
      return;
    }
    EXPECT_EQ(code_of([&] {
                Group group;
                comm.all_reduce(std::span(a));
                group.submit();
              }),
              ErrorCode::aborted);
  });
}

}  // namespace
}  // namespace rondo
