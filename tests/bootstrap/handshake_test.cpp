#include "bootstrap/handshake.hpp"

#include "base/bytes.hpp"
#include "base/socket.hpp"
#include "bootstrap/rendezvous.hpp"

#include <rondo/error.hpp>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

namespace rondo::bootstrap {
namespace {

using Progress = Handshake::Progress;

struct Pair {
  base::FileDescriptor a;
  base::FileDescriptor b;
  Pair() {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
      throw base::system_error("socketpair", errno);
    }
    a = base::FileDescriptor(ends[0]);
    b = base::FileDescriptor(ends[1]);
  }
};

// Steps until done, an error, or nothing moves any more.
std::optional<ErrorCode> step(Handshake& handshake, bool& done) {
  try {
    done = handshake.step() == Progress::done;
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

struct Outcome {
  std::optional<ErrorCode> initiator;
  std::optional<ErrorCode> acceptor;
  bool initiator_done = false;
  bool acceptor_done = false;
};

Outcome converse(Handshake& initiator, Handshake& acceptor) {
  Outcome out;
  for (int i = 0; i < 10; ++i) {
    if (!out.initiator && !out.initiator_done) out.initiator = step(initiator, out.initiator_done);
    if (!out.acceptor && !out.acceptor_done) out.acceptor = step(acceptor, out.acceptor_done);
  }
  return out;
}

std::vector<std::byte> drain(int fd) {
  std::vector<std::byte> out(4096);
  const auto count = recv(fd, out.data(), out.size(), MSG_DONTWAIT);
  out.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return out;
}

void put(int fd, std::span<const std::byte> bytes) {
  ASSERT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

TEST(Handshake, BothSidesLearnPurposeRanksAndHello) {
  Pair pair;
  const Key key = random_key();
  const auto hello = base::as_bytes("connection 7");
  auto initiator = Handshake::initiate(pair.a.get(), key, purpose_tcp, 3, 5, hello);
  auto acceptor = Handshake::accept(pair.b.get(), key, 5);
  const Outcome outcome = converse(initiator, acceptor);
  ASSERT_TRUE(outcome.initiator_done && outcome.acceptor_done);
  EXPECT_EQ(acceptor.purpose(), purpose_tcp);
  EXPECT_EQ(acceptor.peer_rank(), 3);
  EXPECT_EQ(acceptor.hello(), std::vector<std::byte>(hello.begin(), hello.end()));
  EXPECT_EQ(initiator.peer_rank(), 5);
  EXPECT_EQ(initiator.session_key(0), acceptor.session_key(0));
  EXPECT_NE(initiator.session_key(0), initiator.session_key(1));
}

TEST(Handshake, ReadsNothingBehindItself) {
  Pair pair;
  const Key key = random_key();
  auto initiator = Handshake::initiate(pair.a.get(), key, purpose_shm, 0, 1);
  auto acceptor = Handshake::accept(pair.b.get(), key, 1);
  initiator.step();
  acceptor.step();
  initiator.step();  // the proof is out
  put(pair.a.get(), base::as_bytes("next"));
  acceptor.step();
  ASSERT_EQ(acceptor.step(), Progress::done);
  put(pair.b.get(), base::as_bytes("more"));
  ASSERT_EQ(initiator.step(), Progress::done);
  EXPECT_EQ(drain(pair.b.get()).size(), 4U);
  EXPECT_EQ(drain(pair.a.get()).size(), 4U);
}

TEST(Handshake, AWrongKeyIsRefusedOnBothSides) {
  Pair pair;
  auto initiator = Handshake::initiate(pair.a.get(), random_key(), purpose_control, 0, 1);
  auto acceptor = Handshake::accept(pair.b.get(), random_key(), 1);
  const Outcome outcome = converse(initiator, acceptor);
  EXPECT_EQ(outcome.initiator, ErrorCode::authentication);
  EXPECT_EQ(outcome.acceptor, ErrorCode::authentication);
  EXPECT_TRUE(acceptor.hello().empty());
}

TEST(Handshake, AWrongRankIsRefusedOnBothSides) {
  Pair pair;
  const Key key = random_key();
  auto initiator = Handshake::initiate(pair.a.get(), key, purpose_control, 0, 1);
  auto acceptor = Handshake::accept(pair.b.get(), key, 2);
  const Outcome outcome = converse(initiator, acceptor);
  EXPECT_EQ(outcome.initiator, ErrorCode::authentication);
  EXPECT_EQ(outcome.acceptor, ErrorCode::authentication);
}

// An outsider without the key that sends everything back.
TEST(Handshake, OnesOwnBytesSentBackProveNothing) {
  for (const bool initiates : {true, false}) {
    Pair pair;
    const Key key = random_key();
    auto victim = initiates ? Handshake::initiate(pair.a.get(), key, purpose_control, 0, 0)
                            : Handshake::accept(pair.a.get(), key, 0);
    bool done = false;
    std::optional<ErrorCode> error;
    for (int i = 0; i < 10 && !error; ++i) {
      error = step(victim, done);
      if (const auto bytes = drain(pair.b.get()); !bytes.empty()) put(pair.b.get(), bytes);
    }
    EXPECT_FALSE(done);
    EXPECT_EQ(error, ErrorCode::authentication);
  }
}

// An outsider opens a second connection to the victim and lets it answer its own challenge: two initiators facing each
// other, then two acceptors.
TEST(Handshake, TwoConversationsOfTheSameRoleDoNotProveEachOther) {
  Pair pair;
  const Key key = random_key();
  auto one = Handshake::initiate(pair.a.get(), key, purpose_control, 0, 0);
  auto two = Handshake::initiate(pair.b.get(), key, purpose_control, 0, 0);
  const Outcome initiators = converse(one, two);
  EXPECT_FALSE(initiators.initiator_done);
  EXPECT_FALSE(initiators.acceptor_done);
  EXPECT_EQ(initiators.initiator, ErrorCode::authentication);

  Pair other;
  auto three = Handshake::accept(other.a.get(), key, 0);
  auto four = Handshake::accept(other.b.get(), key, 0);
  const Outcome acceptors = converse(three, four);
  EXPECT_FALSE(acceptors.initiator_done);
  EXPECT_FALSE(acceptors.acceptor_done);
}

// Whatever byte of the initiator's proof an outsider changes, the acceptor refuses.
TEST(Handshake, EveryByteOfTheProofIsAuthenticated) {
  const Key key = random_key();
  std::size_t length = 1;
  std::size_t tolerated = 0;
  for (std::size_t at = 0; at < length; ++at) {
    Pair near;
    Pair far;
    auto initiator = Handshake::initiate(near.a.get(), key, purpose_tcp, 1, 2, base::as_bytes("hello"));
    auto acceptor = Handshake::accept(far.a.get(), key, 2);
    initiator.step();
    acceptor.step();
    put(far.b.get(), drain(near.b.get()));
    put(near.b.get(), drain(far.b.get()));
    initiator.step();
    auto proof = drain(near.b.get());
    ASSERT_FALSE(proof.empty());
    length = proof.size();
    proof[at] ^= std::byte{1};
    put(far.b.get(), proof);
    bool done = false;
    const auto error = step(acceptor, done);
    if (done) {
      // Only padding, which is not looked at, may change, and what was said is the same.
      ++tolerated;
      EXPECT_EQ(acceptor.purpose(), purpose_tcp);
      EXPECT_EQ(acceptor.hello().size(), 5U);
    } else {
      EXPECT_EQ(error, ErrorCode::authentication) << "byte " << at;
    }
  }
  const std::size_t padding = (Handshake::purpose_limit - purpose_tcp.size() - 1) + (Handshake::hello_limit - 5);
  EXPECT_EQ(tolerated, padding);
}

TEST(Handshake, TruncationAtEveryByteIsAnErrorOnceTheConnectionEnds) {
  const Key key = random_key();
  constexpr std::size_t message = 40;
  for (std::size_t length = 0; length < message; ++length) {
    Pair pair;
    auto initiator = Handshake::initiate(pair.a.get(), key, purpose_control, 0, 1);
    auto acceptor = Handshake::accept(pair.b.get(), key, 1);
    initiator.step();
    const auto bytes = drain(pair.b.get());
    put(pair.a.get(), std::span(bytes).first(length));
    pair.a.reset();
    bool done = false;
    EXPECT_EQ(step(acceptor, done), ErrorCode::transport);
    EXPECT_FALSE(done);
  }
}

TEST(Handshake, GarbageIsRefusedAtTheFirstMessage) {
  Pair pair;
  auto acceptor = Handshake::accept(pair.b.get(), random_key(), 1);
  put(pair.a.get(), base::as_bytes("GET / HTTP/1.1\r\nHost: somewhere.example.org\r\n\r\n"));
  bool done = false;
  EXPECT_EQ(step(acceptor, done), ErrorCode::authentication);
}

TEST(Handshake, ASilentPeerEndsTheBlockingFormAtItsDeadline) {
  Pair pair;
  auto acceptor = Handshake::accept(pair.b.get(), random_key(), 1);
  try {
    acceptor.run(base::System::real().now() + 1'000'000);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::deadline);
  }
}

TEST(Handshake, PurposeAndHelloHaveLimits) {
  Pair pair;
  const Key key = random_key();
  const std::vector<std::byte> long_hello(257);
  EXPECT_THROW(Handshake::initiate(pair.a.get(), key, "", 0, 1), Error);
  EXPECT_THROW(Handshake::initiate(pair.a.get(), key, "seventeen letters", 0, 1), Error);
  EXPECT_THROW(Handshake::initiate(pair.a.get(), key, "tcp", 0, 1, long_hello), Error);
}

}  // namespace
}  // namespace rondo::bootstrap
