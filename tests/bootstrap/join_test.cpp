#include "bootstrap/join.hpp"

#include "base/socket.hpp"
#include "bootstrap/control_frame.hpp"
#include "bootstrap/rendezvous.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>

namespace rondo::bootstrap {
namespace {

constexpr base::Nanoseconds second = 1'000'000'000;

struct Outcome {
  std::unique_ptr<base::Poller> poller = base::Poller::make_real();  // outlives the links
  std::optional<Joined> joined;
  std::optional<Error> error;
};

JoinOptions options_of(int rank, int size) {
  JoinOptions options;
  options.rank = rank;
  options.size = size;
  options.deadline = 60 * second;
  options.self.host = fmt::format("host{}", rank);
  options.self.pid = 1000 + rank;
  options.self.settings = "RONDO_ALGO=ring\nRONDO_FIFO_BYTES=4096\n";
  options.self.blob = {static_cast<std::byte>(rank), std::byte{0xab}};
  return options;
}

void join_one(const UniqueId& id, const JoinOptions& options, Outcome& outcome) {
  try {
    outcome.joined.emplace(join(id, options, *outcome.poller));
  } catch (const Error& error) {
    outcome.error = error;
  }
}

std::vector<Outcome> join_all(const UniqueId& id, const std::vector<JoinOptions>& all) {
  std::vector<Outcome> outcomes(all.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] { join_one(id, all[i], outcomes[i]); });
  }
  for (auto& thread : threads) thread.join();
  return outcomes;
}

std::vector<JoinOptions> world(int size, const std::function<void(JoinOptions&)>& change = {}) {
  std::vector<JoinOptions> all;
  for (int rank = 0; rank < size; ++rank) {
    all.push_back(options_of(rank, size));
    if (change) change(all.back());
  }
  return all;
}

void expect_error(const std::vector<Outcome>& outcomes, ErrorCode code, const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    ASSERT_TRUE(outcomes[i].error) << "call " << i << " joined";
    EXPECT_EQ(outcomes[i].error->code(), code) << outcomes[i].error->what();
    for (const auto& part : parts) {
      EXPECT_NE(outcomes[i].error->message().find(part), std::string::npos)
          << "'" << part << "' is not in: " << outcomes[i].error->message();
    }
  }
}

class JoinWorld : public ::testing::TestWithParam<int> {};

TEST_P(JoinWorld, EveryRankGetsTheWholeTableAndItsTreeNeighbours) {
  const int size = GetParam();
  const UniqueId id = UniqueId::create();
  const auto outcomes = join_all(id, world(size));
  for (int rank = 0; rank < size; ++rank) {
    const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(outcome.joined) << "rank " << rank << ": " << outcome.error->what();
    ASSERT_EQ(outcome.joined->peers.size(), static_cast<std::size_t>(size));
    for (int peer = 0; peer < size; ++peer) {
      const auto& info = outcome.joined->peers[static_cast<std::size_t>(peer)];
      EXPECT_EQ(info.host, fmt::format("host{}", peer));
      EXPECT_EQ(info.pid, 1000 + peer);
      EXPECT_EQ(info.blob, options_of(peer, size).self.blob);
    }
    std::vector<int> neighbours;
    for (const auto& [peer, link] : outcome.joined->links) {
      neighbours.push_back(peer);
      EXPECT_FALSE(link->closed());
    }
    std::vector<int> expected = tree_children(rank, size);
    if (rank > 0) expected.insert(expected.begin(), (rank - 1) / 4);
    EXPECT_EQ(neighbours, expected);
    EXPECT_EQ(outcome.joined->key, key_of(id));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, JoinWorld, ::testing::Values(1, 2, 3, 8, 64));

TEST(Join, LinksCarryFramesBetweenNeighbours) {
  const UniqueId id = UniqueId::create();
  const auto outcomes = join_all(id, world(2));
  ASSERT_TRUE(outcomes[0].joined && outcomes[1].joined);
  const std::vector<std::byte> frame(300'000, std::byte{7});  // more than a socket takes at once
  outcomes[0].joined->links.at(1)->send(frame);
  outcomes[0].joined->links.at(1)->send({});
  std::vector<std::vector<std::byte>> received;
  const auto deadline = base::System::real().now() + 30 * second;
  while (received.size() < 2 && base::System::real().now() < deadline) {
    outcomes[0].poller->wait(1'000'000);
    outcomes[1].poller->wait(1'000'000);
    while (auto next = outcomes[1].joined->links.at(0)->receive()) received.push_back(std::move(*next));
  }
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(received[0], frame);
  EXPECT_TRUE(received[1].empty());
}

TEST(Join, ARankThatNeverComesIsNamedToAllOthers) {
  const UniqueId id = UniqueId::create();
  auto all = world(4, [](JoinOptions& options) { options.deadline = second / 2; });
  all.erase(all.begin() + 2);
  const auto outcomes = join_all(id, all);
  expect_error(outcomes, ErrorCode::deadline, {"rank 2 of 4"});
  EXPECT_EQ(outcomes[0].error->peer(), 2);
}

TEST(Join, TwoProcessesWithTheSameRankAreBothNamed) {
  const UniqueId id = UniqueId::create();
  auto all = world(3);
  all[2].rank = 1;
  expect_error(join_all(id, all), ErrorCode::configuration, {"rank 1", "host1", "host2", "1001", "1002"});
}

TEST(Join, DifferentWorldSizesAreNamed) {
  const UniqueId id = UniqueId::create();
  auto all = world(3);
  all[1].size = 4;
  expect_error(join_all(id, all), ErrorCode::configuration, {"3", "4", "rank 1 (host1, pid 1001)"});
}

TEST(Join, ASettingThatDiffersIsNamedWithBothValuesAndRanks) {
  const UniqueId id = UniqueId::create();
  auto all = world(2);
  all[1].self.settings = "RONDO_ALGO=tree\nRONDO_FIFO_BYTES=4096\n";
  expect_error(join_all(id, all), ErrorCode::configuration, {"RONDO_ALGO", "'ring'", "'tree'", "rank 0", "rank 1"});
}

TEST(Join, ASettingThatOnlyOneRankHasIsNamed) {
  const UniqueId id = UniqueId::create();
  auto all = world(2);
  all[0].self.settings += "RONDO_TRANSPORTS=tcp\n";
  expect_error(join_all(id, all), ErrorCode::configuration, {"RONDO_TRANSPORTS", "'tcp'", "unset"});
}

TEST(Join, AWrongKeyIsAnAuthenticationError) {
  const UniqueId id = UniqueId::create();
  const auto addresses = addresses_of(id);
  const UniqueId forged = make_unique_id(random_key(), addresses, addresses.front().port());
  std::vector<Outcome> outcomes(1);
  join_one(forged, options_of(1, 2), outcomes[0]);
  expect_error(outcomes, ErrorCode::authentication, {"key"});
}

TEST(Join, TheRendezvousMayStartAfterTheRanks) {
  const std::vector<base::SocketAddress> loopback{base::SocketAddress::parse("127.0.0.1")};
  const Key key = random_key();
  std::uint16_t port = 0;
  {
    const base::Listener probe(loopback, {});
    port = probe.port();
  }
  const UniqueId id = make_unique_id(key, loopback, port);
  std::vector<Outcome> outcomes(2);
  std::thread early([&] { join_one(id, options_of(1, 2), outcomes[1]); });
  const auto service = start_rendezvous(loopback, {port, port}, key);
  EXPECT_EQ(service.id().bytes, id.bytes);
  join_one(id, options_of(0, 2), outcomes[0]);
  early.join();
  for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.joined) << outcome.error->what();
}

TEST(Join, ARendezvousThatEndsIsAnErrorOfThoseWhoWait) {
  const std::vector<base::SocketAddress> loopback{base::SocketAddress::parse("127.0.0.1")};
  std::optional<Rendezvous> service(start_rendezvous(loopback, {}, random_key()));
  const UniqueId id = service->id();
  std::vector<Outcome> outcomes(1);
  auto options = options_of(0, 2);
  options.deadline = second;
  std::thread waiting([&] { join_one(id, options, outcomes[0]); });
  service.reset();
  waiting.join();
  ASSERT_TRUE(outcomes[0].error);
  // Whether it was reached before it ended is a matter of luck.
  EXPECT_TRUE(outcomes[0].error->code() == ErrorCode::rank_failed || outcomes[0].error->code() == ErrorCode::deadline);
}

TEST(Join, ARankOutsideTheWorldIsRefused) {
  const auto poller = base::Poller::make_real();
  const std::vector<base::SocketAddress> loopback{base::SocketAddress::parse("127.0.0.1")};
  const UniqueId id = make_unique_id(random_key(), loopback, 1);
  EXPECT_THROW(join(id, options_of(2, 2), *poller), Error);
  EXPECT_THROW(join(id, options_of(-1, 2), *poller), Error);
  EXPECT_THROW(join(id, options_of(0, 0), *poller), Error);
}

TEST(UniqueId, TextGivesTheSameBytesBack) {
  const std::vector<base::SocketAddress> addresses{base::SocketAddress::parse("10.1.2.3"),
                                                   base::SocketAddress::parse("2001:db8::5"),
                                                   base::SocketAddress::parse("127.0.0.1")};
  const Key key = random_key();
  const UniqueId id = make_unique_id(key, addresses, 4242);
  EXPECT_EQ(UniqueId::from_string(id.to_string()).bytes, id.bytes);
  EXPECT_EQ(key_of(id), key);
  std::vector<std::string> texts;
  for (const auto& address : addresses_of(id)) texts.push_back(address.to_string());
  EXPECT_EQ(texts, (std::vector<std::string>{"10.1.2.3:4242", "[2001:db8::5]:4242", "127.0.0.1:4242"}));
}

TEST(UniqueId, KeepsALoopbackAddressWhenThereAreTooMany) {
  std::vector<base::SocketAddress> addresses;
  for (int i = 0; i < 40; ++i) addresses.push_back(base::SocketAddress::parse(fmt::format("10.0.0.{}", i + 1)));
  addresses.push_back(base::SocketAddress::parse("127.0.0.1"));
  const auto kept = addresses_of(make_unique_id(random_key(), addresses, 1));
  EXPECT_EQ(kept.front().to_string(), "10.0.0.1:1");
  EXPECT_TRUE(kept.back().is_loopback());
}

TEST(UniqueId, OtherTextsAndBytesAreRefused) {
  EXPECT_THROW(UniqueId::from_string(""), Error);
  EXPECT_THROW(UniqueId::from_string(std::string(255, 'a')), Error);
  EXPECT_THROW(UniqueId::from_string(std::string(255, 'a') + "g"), Error);
  const UniqueId zeros;
  EXPECT_THROW(addresses_of(zeros), Error);
  EXPECT_THROW(key_of(zeros), Error);
  // An announced address that does not fit.
  const std::vector<base::SocketAddress> one{base::SocketAddress::parse("10.0.0.1")};
  UniqueId id = make_unique_id(random_key(), one, 1);
  id.bytes[5] = std::byte{255};
  EXPECT_THROW(addresses_of(id), Error);
}

}  // namespace
}  // namespace rondo::bootstrap
