// What the tcp transport accepts from a wire.
#include "transports/tcp/wire.hpp"

#include "ranks.hpp"
#include "transports/tcp/probe.hpp"
#include "transports/tcp/receiver.hpp"

#include <sys/socket.h>
#include <unistd.h>

namespace rondo::transport::tcp {
namespace {

TEST(Wire, HelloRoundTrip) {
  const Hello hello{HelloKind::data, {0x0123456789abcdef, 3, 250, 77}, {4, 262144}};
  const Hello back = decode_hello(encode(hello));
  EXPECT_EQ(back.kind, hello.kind);
  EXPECT_EQ(back.key, hello.key);
  EXPECT_EQ(back.layout.slots, 4U);
  EXPECT_EQ(back.layout.slot_bytes, 262144U);
  EXPECT_EQ(decode_hello(encode(Hello{HelloKind::probe, {}, {}})).kind, HelloKind::probe);
}

TEST(Wire, RefusesMalformedHellos) {
  const auto good = encode(Hello{HelloKind::data, {1, 0, 1, 0}, {4, 4096}});
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_THROW(decode_hello(std::span(good).first(cut)), Error) << cut;
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_THROW(decode_hello(longer), Error);
  auto kind = good;
  kind[0] = std::byte{9};
  EXPECT_THROW(decode_hello(kind), Error);
  for (const FifoLayout layout : {FifoLayout{0, 4096}, FifoLayout{3, 4096}, FifoLayout{1U << 30, 4096},
                                  FifoLayout{4, 0}, FifoLayout{4, 65}, FifoLayout{4, 0xffffffc0U}}) {
    EXPECT_THROW(decode_hello(encode(Hello{HelloKind::data, {}, layout})), Error);
  }
}

std::uint32_t packed(std::size_t length, PayloadKind kind) {
  return static_cast<std::uint32_t>(length << 2) | static_cast<std::uint32_t>(kind);
}

TEST(Wire, RefusesMalformedHeaders) {
  const auto decode = [](const MessageHeader& header) { return decode_header(encode(header).data(), 5, 4096, 2); };
  EXPECT_EQ(decode({7, packed(4096, PayloadKind::slot), 5}).length(), 4096U);
  EXPECT_EQ(decode({7, packed(48, PayloadKind::inlined), 5}).signature, 7U);
  EXPECT_THROW(decode({7, packed(4097, PayloadKind::slot), 5}), Error);
  EXPECT_THROW(decode({7, packed((1U << 30) - 1, PayloadKind::slot), 5}), Error);
  EXPECT_THROW(decode({7, packed(49, PayloadKind::inlined), 5}), Error);
  EXPECT_THROW(decode({7, packed(16, PayloadKind::reference), 5}), Error);
  EXPECT_THROW(decode({7, 3, 5}), Error);
  EXPECT_THROW(decode({7, packed(8, PayloadKind::slot), 4}), Error);
  EXPECT_THROW(decode({7, packed(8, PayloadKind::slot), 6}), Error);
}

// A receiver on one end of a socket pair, the test on the other.
class RawReceiver : public testing::Test {
 protected:
  RawReceiver() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) throw std::runtime_error("socketpair");
    wire_ = base::FileDescriptor(ends[0]);
    receiver_ = TcpReceiver::create({base::System::real(), bell_, events_, key_, 1}, {1, 0, 1, 0}, {4, 4096},
                                    base::FileDescriptor(ends[1]));
  }
  void write(std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(wire_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  base::DoorbellWord bell_;
  std::unique_ptr<base::Poller> poller_ = base::Poller::make_real();
  WireEvents events_{*poller_};
  bootstrap::Key key_{};
  base::FileDescriptor wire_;
  std::shared_ptr<TcpReceiver> receiver_;
};

TEST_F(RawReceiver, TakesMessagesByteByByte) {
  std::vector<std::byte> stream;
  for (std::uint64_t m = 0; m < 3; ++m) {
    const auto header = encode(MessageHeader{9, packed(100, PayloadKind::slot), m + 1});
    stream.insert(stream.end(), header.begin(), header.end());
    for (int i = 0; i < 100; ++i) stream.push_back(static_cast<std::byte>(i + static_cast<int>(m)));
  }
  ReceiveEnd& end = receiver_->end();
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    write(std::span(stream).subspan(i, 1));
    receiver_->progress();
    const bool whole = (i + 1) % 116 == 0;
    ASSERT_EQ(end.try_peek() != nullptr, whole) << i;
    if (!whole) continue;
    for (std::size_t b = 0; b < 100; ++b) EXPECT_EQ(end.slot()[b], static_cast<std::byte>(b + seen));
    end.release();
    ++seen;
  }
  EXPECT_EQ(seen, 3U);
}

TEST_F(RawReceiver, ThrowsOnAMessageThatOverflowsItsSlot) {
  write(encode(MessageHeader{9, packed(4097, PayloadKind::slot), 1}));
  EXPECT_THROW(receiver_->progress(), Error);
}

TEST_F(RawReceiver, ThrowsOnARepeatedMessage) {
  write(encode(MessageHeader{9, packed(0, PayloadKind::slot), 1}));
  write(encode(MessageHeader{9, packed(0, PayloadKind::slot), 1}));
  EXPECT_THROW(receiver_->progress(), Error);
}

TEST_F(RawReceiver, ThrowsWhenTheWireEndsWithinAMessage) {
  write(encode(MessageHeader{9, packed(100, PayloadKind::slot), 1}));
  wire_.reset();
  receiver_->progress();  // takes the header
  EXPECT_THROW(receiver_->progress(), Error);
}

TEST_F(RawReceiver, RingsTheBellOncePerArming) {
  base::arm(bell_, base::System::real());
  receiver_->arm();
  poller_->wait(0);
  EXPECT_EQ(bell_.armed.load(), 1U);
  write(encode(MessageHeader{9, packed(0, PayloadKind::slot), 1}));
  poller_->wait(1'000'000'000);
  EXPECT_EQ(bell_.armed.load(), 0U);
  base::arm(bell_, base::System::real());
  poller_->wait(0);  // not asked again, so the service thread stays asleep
  EXPECT_EQ(bell_.armed.load(), 1U);
  receiver_->arm();  // the message is still in the socket
  poller_->wait(1'000'000'000);
  EXPECT_EQ(bell_.armed.load(), 0U);
}

}  // namespace
}  // namespace rondo::transport::tcp
