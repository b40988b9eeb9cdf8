// What every transport's connections must do, over threads that share mappings, shared memory and tcp.
#include "ranks.hpp"

namespace rondo::transport::test {
namespace {

class Fifo : public testing::TestWithParam<const char*> {};

TEST_P(Fifo, MessagesOfMixedSizesArriveInOrderAndIntact) {
  constexpr std::uint64_t count = 10'000;
  Ranks ranks(2, GetParam(), 128U << 10);
  const ConnectionKey key{7, 0, 1, 3};
  std::thread sender([&] {
    SendEnd& end = *ranks[0].open_send(key);
    for (std::uint64_t m = 0; m < count; ++m) send_message(ranks[0], end, make_message(m, end.slot_bytes));
    wait_for(ranks[0], end.pump, [&] { return end.drained(); });
  });
  ReceiveEnd& end = open_receive(ranks[1], key);
  std::uint64_t wrong = 0;
  for (std::uint64_t m = 0; m < count; ++m) wrong += !receive_message(ranks[1], end, make_message(m, end.slot_bytes));
  sender.join();
  EXPECT_EQ(wrong, 0U);
}

TEST_P(Fifo, DefaultSlotsCarryTheirFullSize) {
  Ranks ranks(2, GetParam());
  const ConnectionKey key{1, 1, 0, 0};
  std::thread sender([&] {
    SendEnd& end = *ranks[1].open_send(key);
    for (std::uint32_t m = 0; m < 40; ++m) {
      send_message(ranks[1], end,
                   {m, PayloadKind::slot, std::vector<std::byte>(end.slot_bytes, static_cast<std::byte>(m + 1))});
    }
    wait_for(ranks[1], end.pump, [&] { return end.drained(); });
  });
  ReceiveEnd& end = open_receive(ranks[0], key);
  for (std::uint32_t m = 0; m < 40; ++m) {
    EXPECT_TRUE(receive_message(
        ranks[0], end, {m, PayloadKind::slot, std::vector<std::byte>(end.slot_bytes, static_cast<std::byte>(m + 1))}));
  }
  sender.join();
}

TEST_P(Fifo, ReceiveEndMayBeOpenedBeforeTheSendEnd) {
  Ranks ranks(2, GetParam());
  const ConnectionKey key{2, 0, 1, 9};
  EXPECT_EQ(ranks[1].try_open_receive(key), nullptr);
  bool same = false;
  std::thread receiver([&] { same = receive_message(ranks[1], open_receive(ranks[1], key), make_message(5, 4096)); });
  send_message(ranks[0], *ranks[0].open_send(key), make_message(5, 4096));
  receiver.join();
  EXPECT_TRUE(same);
}

TEST_P(Fifo, ConnectionsOfDifferentTagsAndContextsAreIndependent) {
  Ranks ranks(2, GetParam());
  for (std::uint64_t context = 1; context <= 3; ++context) {
    for (std::uint32_t tag = 0; tag < 3; ++tag) {
      SendEnd& end = *ranks[0].open_send({context, 0, 1, tag});
      send_message(ranks[0], end, make_message(context * 10 + tag, 4096));
    }
  }
  for (std::uint64_t context = 3; context >= 1; --context) {
    for (std::uint32_t tag = 0; tag < 3; ++tag) {
      ReceiveEnd& end = open_receive(ranks[1], {context, 0, 1, tag});
      EXPECT_TRUE(receive_message(ranks[1], end, make_message(context * 10 + tag, 4096)));
    }
  }
  EXPECT_EQ(ranks[1].try_open_receive({1, 0, 1, 3}), nullptr);
  EXPECT_EQ(ranks[1].try_open_receive({4, 0, 1, 0}), nullptr);
}

TEST_P(Fifo, ReopenedKeyStartsFromNumberZero) {
  Ranks ranks(2, GetParam());
  const ConnectionKey key{5, 0, 1, 1};
  for (std::uint64_t life = 0; life < 5; ++life) {
    SendEnd& send = *ranks[0].open_send(key);
    EXPECT_EQ(send.sent, 0U);
    EXPECT_EQ(send.credit->consumed.load(), 0U);
    send_message(ranks[0], send, make_message(life, 4096));
    ReceiveEnd& receive = open_receive(ranks[1], key);
    EXPECT_EQ(receive.received, 0U);
    EXPECT_TRUE(receive_message(ranks[1], receive, make_message(life, 4096)));
    EXPECT_EQ(receive.try_peek(), nullptr);
    wait_for(ranks[0], send.pump, [&] { return send.drained(); });
    // Either side may be first.
    ranks[life % 2 == 0 ? 0 : 1].close_context(5);
    ranks[life % 2 == 0 ? 1 : 0].close_context(5);
    EXPECT_EQ(ranks[1].try_open_receive(key), nullptr);
  }
}

TEST_P(Fifo, ReceiverThatClosesFirstDoesNotFindTheOldConnectionAgain) {
  Ranks ranks(2, GetParam());
  const ConnectionKey key{6, 0, 1, 1};
  send_message(ranks[0], *ranks[0].open_send(key), make_message(1, 4096));
  EXPECT_TRUE(receive_message(ranks[1], open_receive(ranks[1], key), make_message(1, 4096)));
  ranks[1].close_context(6);
  EXPECT_EQ(ranks[1].try_open_receive(key), nullptr);
  ranks[0].close_context(6);
  send_message(ranks[0], *ranks[0].open_send(key), make_message(2, 4096));
  EXPECT_TRUE(receive_message(ranks[1], open_receive(ranks[1], key), make_message(2, 4096)));
}

TEST_P(Fifo, RankCanSendToItself) {
  Ranks ranks(1, GetParam());
  const ConnectionKey key{1, 0, 0, 0};
  SendEnd& send = *ranks[0].open_send(key);
  send_message(ranks[0], send, make_message(3, 4096));
  EXPECT_TRUE(receive_message(ranks[0], open_receive(ranks[0], key), make_message(3, 4096)));
  wait_for(ranks[0], send.pump, [&] { return send.drained(); });
}

TEST_P(Fifo, NothingStaysOpenAfterDestruction) {
  { Ranks warm_up(2, GetParam()); }
  const std::size_t before = open_descriptors();
  {
    Ranks ranks(2, GetParam());
    const ConnectionKey key{1, 0, 1, 0};
    send_message(ranks[0], *ranks[0].open_send(key), make_message(1, 4096));
    EXPECT_TRUE(receive_message(ranks[1], open_receive(ranks[1], key), make_message(1, 4096)));
  }
  EXPECT_EQ(open_descriptors(), before);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    EXPECT_EQ(entry.path().filename().string().find("rondo"), std::string::npos) << entry.path();
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Fifo, testing::Values("local", "shm", "tcp"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// In shared memory the receiver's release is the credit; over tcp it is the kernel's room, so only its end is pinned.
TEST(ShmFifo, CreditsBlockAtTheNumberOfSlots) {
  Ranks ranks(2, "shm");
  const ConnectionKey key{1, 0, 1, 0};
  SendEnd& send = *ranks[0].open_send(key);
  for (std::uint32_t m = 0; m < send.slots; ++m) {
    ASSERT_TRUE(send.try_acquire());
    send.publish(m, 0, PayloadKind::inlined);
  }
  send.flush();
  EXPECT_FALSE(send.try_acquire());
  ReceiveEnd& receive = open_receive(ranks[1], key);
  ASSERT_NE(receive.try_peek(), nullptr);
  EXPECT_FALSE(send.try_acquire());
  receive.release();
  EXPECT_TRUE(send.try_acquire());
  EXPECT_FALSE(send.drained());
}

TEST(TcpFifo, SenderStopsWhenNobodyReceives) {
  Ranks ranks(2, "tcp");
  const ConnectionKey key{1, 0, 1, 0};
  SendEnd& send = *ranks[0].open_send(key);
  ReceiveEnd& receive = open_receive(ranks[1], key);
  // Sockets hold a few MiB; an unread gibibyte can't all be out.
  std::uint64_t sent = 0;
  const std::uint64_t most = (std::uint64_t{1} << 30) / send.slot_bytes;
  for (int idle = 0; idle < 1000 && sent < most; ++idle) {
    while (send.try_acquire() && sent < most) {
      send.publish(1, send.slot_bytes, PayloadKind::slot);
      send.flush();
      ++sent;
      idle = 0;
    }
    send.pump->progress();
  }
  EXPECT_LT(sent, most);
  EXPECT_FALSE(send.pump->idle());
  for (std::uint64_t m = 0; m < sent; ++m) {
    wait_for(ranks[1], receive.pump, [&] { return receive.try_peek() != nullptr; });
    receive.release();
  }
  wait_for(ranks[0], send.pump, [&] { return send.drained(); });
  EXPECT_TRUE(send.pump->idle());
}

TEST(TcpFifo, WhatTheOwnerFlushedGoesOutWithoutHim) {
  Ranks ranks(2, "tcp");
  const ConnectionKey key{1, 0, 1, 0};
  SendEnd& send = *ranks[0].open_send(key);
  while (send.try_acquire()) send.publish(static_cast<std::uint32_t>(send.sent), send.slot_bytes, PayloadKind::slot);
  send.flush();  // not even connected yet; nobody steps the sender from here on
  ReceiveEnd& receive = open_receive(ranks[1], key);
  for (std::uint32_t m = 0; m < send.slots; ++m) {
    const SlotLine* line = nullptr;
    wait_for(ranks[1], receive.pump, [&] { return (line = receive.try_peek()) != nullptr; });
    EXPECT_EQ(line->signature, m);
    receive.release();
  }
}

TEST(TcpFifo, ClosedSenderIsAnErrorOnceItsMessagesAreTaken) {
  Ranks ranks(2, "tcp");
  const ConnectionKey key{1, 0, 1, 0};
  SendEnd& send = *ranks[0].open_send(key);
  send_message(ranks[0], send, make_message(1, 4096));
  wait_for(ranks[0], send.pump, [&] { return send.drained(); });
  ReceiveEnd& receive = open_receive(ranks[1], key);
  ranks[0].close_context(1);
  EXPECT_TRUE(receive_message(ranks[1], receive, make_message(1, 4096)));
  try {
    wait_for(ranks[1], receive.pump, [] { return false; });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::transport);
    EXPECT_EQ(error.peer(), 0);
  }
}

TEST(TcpFifo, ClosedReceiverIsAnErrorOfTheSender) {
  Ranks ranks(2, "tcp");
  const ConnectionKey key{1, 0, 1, 0};
  SendEnd& send = *ranks[0].open_send(key);
  open_receive(ranks[1], key);
  ranks[1].close_context(1);
  try {
    for (int m = 0; m < 10'000; ++m) send_message(ranks[0], send, {0, PayloadKind::slot, std::vector<std::byte>(4096)});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::transport);
    EXPECT_EQ(error.peer(), 1);
  }
}

// Not of open_send(): only while it steps an operation does the engine ask the control tree who has died.
TEST(TcpFifo, PeerThatHasEndedIsAnErrorOfTheSendersWire) {
  Ranks ranks(2, "tcp");
  EXPECT_EQ(ranks[0].name(1), "tcp");  // probed while it lived
  ranks.end(1);
  SendEnd* const send = ranks[0].open_send({1, 0, 1, 0});
  try {
    wait_for(ranks[0], send->pump, [] { return false; });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::transport);
    EXPECT_EQ(error.peer(), 1);
    EXPECT_NE(error.message().find("cannot be reached over tcp"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace rondo::transport::test
