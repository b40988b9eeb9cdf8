// send and receive: tags, sources, lengths, errors.
#include <cstdint>
#include <numeric>
#include <vector>

#include "communicator/ranks.hpp"

namespace rondo {
namespace {

std::vector<std::int32_t> counted(std::size_t count, std::int32_t from) {
  std::vector<std::int32_t> data(count);
  std::iota(data.begin(), data.end(), from);
  return data;
}

TEST(PointToPoint, MessagesOfOneTagArriveInOrder) {
  with_ranks(2, [](Communicator& comm) {
    for (std::int32_t i = 0; i < 200; ++i) {
      std::vector<std::int32_t> data(1, i);
      if (comm.rank() == 0) {
        comm.send(std::span(data), 1, 3);
      } else {
        comm.receive(std::span(data), 0, 3);
        ASSERT_EQ(data[0], i);
      }
    }
  });
}

TEST(PointToPoint, LengthsFromZeroPastManySlices) {
  with_ranks(2, [](Communicator& comm) {
    for (const std::size_t count : {0U, 1U, 11U, 12U, 13U, 1000U, 16384U, 16385U, 700001U}) {
      if (comm.rank() == 0) {
        auto data = counted(count, 5);
        comm.send(std::span(data), 1);
      } else {
        std::vector<std::int32_t> data(count, -1);
        const Work work = comm.receive(std::span(data), 0);
        ASSERT_EQ(data, counted(count, 5)) << count;
        EXPECT_EQ(work.source(), 0);
        EXPECT_EQ(work.bytes(), count * 4);
      }
    }
  });
}

TEST(PointToPoint, TagsMayBeReceivedInAnotherOrder) {
  with_ranks(2, [](Communicator& comm) {
    constexpr std::size_t count = 100000;
    if (comm.rank() == 0) {
      std::vector<std::vector<std::int32_t>> messages;
      for (int tag = 0; tag < 4; ++tag) messages.push_back(counted(tag % 2 == 0 ? count : 3, tag));
      const Stream stream;
      for (int tag = 0; tag < 4; ++tag)
        comm.send(std::span(messages[static_cast<std::size_t>(tag)]), 1, tag, {&stream, {}});
      stream.synchronize();
    } else {
      for (const int tag : {3, 0, 2, 1}) {
        std::vector<std::int32_t> data(tag % 2 == 0 ? count : 3);
        comm.receive(std::span(data), 0, tag);
        ASSERT_EQ(data, counted(data.size(), tag)) << "tag " << tag;
      }
    }
  });
}

TEST(PointToPoint, NegativeAndExtremeTagsAreTags) {
  with_ranks(2, [](Communicator& comm) {
    const int tags[] = {-1, 0, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()};
    for (int i = 0; i < 4; ++i) {
      std::vector<std::int32_t> data(2, i);
      if (comm.rank() == 0) comm.send(std::span(data), 1, tags[i]);
    }
    for (int i = 3; comm.rank() == 1 && i >= 0; --i) {
      std::vector<std::int32_t> data(2, -1);
      comm.receive(std::span(data), 0, tags[i]);
      EXPECT_EQ(data[1], i);
    }
  });
}

TEST(PointToPoint, AnySourceTakesEachMessageOnceAndSaysWhoSent) {
  with_ranks(4, [](Communicator& comm) {
    if (comm.rank() != 0) {
      auto data = counted(comm.rank() == 2 ? 50000 : 50000, 1000 * comm.rank());
      comm.send(std::span(data), 0, 9);
      return;
    }
    std::vector<int> seen(4, 0);
    for (int i = 0; i < 3; ++i) {
      std::vector<std::int32_t> data(50000);
      const Work work = comm.receive(std::span(data), any_source, 9);
      ASSERT_GE(work.source(), 1);
      ++seen[static_cast<std::size_t>(work.source())];
      EXPECT_EQ(data, counted(50000, 1000 * work.source()));
    }
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 1, 1}));
  });
}

TEST(PointToPoint, ARankMaySendToItself) {
  for (const int n : {1, 2})
    with_ranks(n, [](Communicator& comm) {
      for (const std::size_t count : {0U, 3U, 200000U}) {
        auto data = counted(count, 7);
        std::vector<std::int32_t> got(count, -1);
        {
          const Group group;
          comm.send(std::span(data), comm.rank());
          comm.receive(std::span(got), comm.rank());
        }
        ASSERT_EQ(got, data);
      }
    });
}

TEST(PointToPoint, AnotherLengthIsAMismatchThatNamesBoth) {
  with_ranks(2, [](Communicator& comm) {
    auto data = counted(10, 0);
    std::string text;
    if (comm.rank() == 0) {
      EXPECT_EQ(code_of([&] {
                  comm.send(std::span(data), 1);
                  comm.barrier();
                }),
                ErrorCode::mismatch);
    } else {
      EXPECT_EQ(code_of([&] { comm.receive(std::span(data).first(9), 0); }, &text), ErrorCode::mismatch);
      EXPECT_NE(text.find("36 bytes"), std::string::npos) << text;
      EXPECT_NE(text.find("40 bytes"), std::string::npos) << text;
    }
  });
}

TEST(PointToPoint, AnotherTypeOfTheSameLengthIsAMismatch) {
  with_ranks(2, [](Communicator& comm) {
    auto data = counted(10, 0);
    EXPECT_EQ(code_of([&] {
                if (comm.rank() == 0) comm.send(std::span(data), 1);
                else comm.receive(data.data(), 10, DataType::float32, 0);
                comm.barrier();
              }),
              ErrorCode::mismatch);
  });
}

// The message is there, whole, before the receive is posted.
TEST(PointToPoint, AMismatchIsFoundForAMessageThatCameFirst) {
  with_ranks(2, [](Communicator& comm) {
    auto data = counted(10, 0);
    EXPECT_EQ(code_of([&] {
                if (comm.rank() == 0) {
                  comm.send(std::span(data), 1, 1);
                  comm.send(std::span(data), 1, 2);
                } else {
                  comm.receive(std::span(data), 0, 2);
                  comm.receive(std::span(data).first(3), 0, 1);
                }
                comm.barrier();
              }),
              ErrorCode::mismatch);
  });
}

TEST(PointToPoint, PostedReceivesAreServedInTheOrderOfPosting) {
  with_ranks(2, [](Communicator& comm) {
    constexpr std::size_t rounds = 10;
    if (comm.rank() == 1) {
      std::vector<std::vector<std::int32_t>> got(rounds, std::vector<std::int32_t>(3000));
      std::vector<Stream> streams(rounds);
      std::vector<Work> works;
      for (std::size_t i = 0; i < rounds; ++i)
        works.push_back(comm.receive(std::span(got[i]), i % 2 == 0 ? 0 : any_source, 4, {&streams[i], {}}));
      comm.barrier();
      for (const Work& w : works) w.wait();
      for (std::size_t i = 0; i < rounds; ++i) EXPECT_EQ(got[i], counted(3000, static_cast<std::int32_t>(i)));
    } else {
      comm.barrier();
      for (std::size_t i = 0; i < rounds; ++i) {
        auto data = counted(3000, static_cast<std::int32_t>(i));
        comm.send(std::span(data), 1, 4);
      }
    }
  });
}

TEST(PointToPoint, CollectivesAndMessagesDoNotMeet) {
  with_ranks(3, [](Communicator& comm) {
    const int next = (comm.rank() + 1) % 3, before = (comm.rank() + 2) % 3;
    for (int round = 0; round < 10; ++round) {
      auto data = counted(20000, comm.rank());
      std::vector<std::int32_t> got(20000), sum(500, 1);
      {
        const Group group;
        comm.send(std::span(data), next, round);
        comm.all_reduce(std::span(sum));
        comm.receive(std::span(got), before, round);
      }
      ASSERT_EQ(got, counted(20000, before));
      ASSERT_EQ(sum, std::vector<std::int32_t>(500, 3));
    }
  });
}

TEST(PointToPoint, WrongArgumentsLeaveTheCommunicatorUsable) {
  with_ranks(2, [](Communicator& comm) {
    auto data = counted(4, 0);
    EXPECT_EQ(code_of([&] { comm.send(std::span(data), 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.send(std::span(data), -1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.receive(std::span(data), -2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.send(nullptr, 4, DataType::int32, 0); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.receive(data.data(), 4, static_cast<DataType>(99), 0); }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { comm.send(data.data(), ~std::size_t{0}, DataType::int32, 0); }),
              ErrorCode::invalid_argument);
    const CallOptions negative{nullptr, std::chrono::nanoseconds(-1)};
    EXPECT_EQ(code_of([&] { comm.send(std::span(data), 1, 0, negative); }), ErrorCode::invalid_argument);
    if (comm.rank() == 0) comm.send(std::span(data), 1);
    else comm.receive(std::span(data), 0);
    comm.barrier();
  });
}

TEST(PointToPoint, AReceiveThatNobodyServesEndsAtItsDeadline) {
  with_ranks(2, [](Communicator& comm) {
    std::vector<std::int32_t> data(4);
    std::string text;
    if (comm.rank() == 0) {
      EXPECT_EQ(code_of(
                    [&] {
                      comm.receive(std::span(data), 1, 6, {nullptr, std::chrono::milliseconds(50)});
                    },
                    &text),
                ErrorCode::deadline);
      EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
      EXPECT_NE(text.find("tag 6"), std::string::npos) << text;
    } else {
      EXPECT_EQ(code_of([&] { comm.barrier(); }), ErrorCode::deadline);
    }
  });
}

}  // namespace
}  // namespace rondo
