// Choosing transports, reaching peers in other processes, windows, and who is refused.
#include "ranks.hpp"

#include "base/bytes.hpp"
#include "transports/shm/descriptor_server.hpp"
#include "transports/shm/shm.hpp"
#include "transports/tcp/tcp.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace rondo::transport::test {
namespace {

using base::System;

TEST(TransportSet, RefusesUnknownAndRepeatedNames) {
  const auto poller = base::Poller::make_real();
  for (const char* list : {"", "shm,", "sm", "shm,shm", "tcp shm"}) {
    TransportOptions options;
    options.list = list;
    EXPECT_THROW(TransportSet(System::real(), *poller, make_key(1), 0, options), Error) << list;
  }
}

TEST(TransportSet, TakesTheFirstOfTheListThatReaches) {
  Ranks both(2, "shm,tcp");
  EXPECT_EQ(both[0].name(1), "shm");
  EXPECT_EQ(both[0].name(0), "self");

  Ranks reversed(2, "tcp,shm");
  EXPECT_EQ(reversed[0].name(1), "tcp");
  // Of the loopback's two addresses, the one that answered first.
  const std::string& why = reversed[0].why(1);
  EXPECT_TRUE(why.find("127.0.0.1:") != std::string::npos || why.find("[::1]:") != std::string::npos) << why;
}

TEST(TransportSet, BothSidesMayProbeAtOnce) {
  Ranks ranks(4, "shm,tcp");
  std::vector<std::thread> threads;
  for (int r = 0; r < 4; ++r) threads.emplace_back([&, r] { ranks[r].probe_all(); });
  for (auto& thread : threads) thread.join();
  for (int r = 0; r < 4; ++r) EXPECT_EQ(ranks[r].name((r + 1) % 4), "shm");
}

// Rank 0 of 2 in this process; rank 1's address is what the test says.
struct Alone {
  std::unique_ptr<base::Poller> poller = base::Poller::make_real();
  TransportSet set;
  std::vector<std::vector<std::byte>> table;
  explicit Alone(const std::string& list)
      : set(System::real(), *poller, make_key(1), 0, [&] {
          TransportOptions options;
          options.list = list;
          options.ranks = 2;
          options.interfaces = "lo";
          return options;
        }()) {}
};

TEST(TransportSet, DeadAddressIsUnreachableAndSaysWhy) {
  std::vector<std::byte> dead;
  {
    Ranks gone(2, "shm,tcp");
    dead = gone[1].address();
  }
  Alone alone("shm,tcp");
  alone.table = {alone.set.address(), dead};
  alone.set.start(alone.table);
  try {
    alone.set.name(1);
    FAIL() << "reached a dead address";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::transport);
    EXPECT_EQ(error.peer(), 1);
    EXPECT_NE(error.message().find("shm: "), std::string::npos) << error.what();
    EXPECT_NE(error.message().find("127.0.0.1:"), std::string::npos) << error.what();
    EXPECT_NE(error.message().find("refused"), std::string::npos) << error.what();
  }
}

TEST(TransportSet, RefusesMalformedAddresses) {
  Alone alone("shm,tcp");
  const auto good = alone.set.address();
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    alone.table = {good, std::vector<std::byte>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut))};
    EXPECT_THROW(alone.set.start(alone.table), Error) << cut;
  }
}

TEST(TransportSet, PeerWithAnotherKeyIsNotReached) {
  TransportOptions options;
  options.ranks = 2;
  options.interfaces = "lo";
  for (const char* list : {"shm", "tcp"}) {
    options.list = list;
    const auto poller = base::Poller::make_real();
    TransportSet stranger(System::real(), *poller, make_key(99), 1, options);
    {
      const ServiceThread service(*poller, [&] { stranger.service(); });
      Alone alone(list);
      alone.table = {alone.set.address(), stranger.address()};
      alone.set.start(alone.table);
      EXPECT_THROW(alone.set.name(1), Error) << list;
    }
  }
}

TEST(Shm, ArenaOfAnotherRankThanAnnouncedIsRefused) {
  // Rank 1's address with rank 2's socket: somebody swaps blobs.
  Ranks ranks(3, "shm");
  Alone alone("shm");
  alone.table = {alone.set.address(), ranks[2].address()};
  alone.set.start(alone.table);
  EXPECT_THROW(alone.set.name(1), Error);
}

TEST(Shm, SilentStrangersDoNotKeepPeersOut) {
  const auto poller = base::Poller::make_real();
  const auto memory = std::make_shared<base::SharedMemory>(base::SharedMemory::create("test", 4096));
  DescriptorServer server(System::real(), *poller, make_key(1), 0,
                          [&](MemoryKind, std::uint64_t id) { return id == 5 ? memory : nullptr; });
  const ServiceThread service(*poller, [&] { server.service(); });
  // Nearly all places are taken by clients that say nothing.
  std::vector<base::FileDescriptor> silent;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(server.name().begin(), server.name().end(), address.sun_path + 1);
  for (std::size_t i = 0; i + 1 < DescriptorServer::most_clients; ++i) {
    silent.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(silent.back().get(), reinterpret_cast<const sockaddr*>(&address),
                        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + server.name().size())),
              0);
  }
  const auto ask = [&](std::uint64_t id) {
    return request_memory(server.name(), make_key(1), 1, 0, MemoryKind::window, id, false,
                          System::real().now() + patience);
  };
  EXPECT_NE(ask(5), nullptr);
  EXPECT_EQ(ask(6), nullptr);
}

TEST(Window, MapsInThreadsOfOneProcess) {
  Ranks ranks(2, "local");
  const auto window = ranks[0].allocate_window(5000);
  window->data[4999] = std::byte{7};
  EXPECT_EQ(ranks[1].map_peer_window(0, window->id), window->data);
  EXPECT_EQ(ranks[0].map_peer_window(0, window->id), window->data);
  EXPECT_GE(ranks[1].peer_window_bytes(0, window->id), 5000U);
  EXPECT_EQ(ranks[1].map_peer_window(0, window->id + 1), nullptr);
  EXPECT_EQ(ranks[1].peer_window_bytes(0, window->id + 1), 0U);
}

TEST(Window, IsPageAlignedAndCached) {
  Ranks ranks(2, "shm");
  const auto window = ranks[0].allocate_window(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(window->data) % base::page_size(), 0U);
  const std::byte* const view = ranks[1].map_peer_window(0, window->id);
  ASSERT_NE(view, nullptr);
  window->data[99] = std::byte{3};
  EXPECT_EQ(view[99], std::byte{3});
  EXPECT_EQ(ranks[1].map_peer_window(0, window->id), view);
}

TEST(Window, ReleasedWindowIsGoneForThoseWhoHaveNotMappedIt) {
  Ranks ranks(2, "shm");
  auto window = ranks[0].allocate_window(100);
  auto other = ranks[0].allocate_window(100);
  const std::uint64_t id = window->id;
  const std::uint64_t other_id = other->id;
  EXPECT_NE(id, other_id);
  ASSERT_NE(ranks[1].map_peer_window(0, other_id), nullptr);
  window.reset();
  other.reset();
  EXPECT_EQ(ranks[1].map_peer_window(0, id), nullptr);
  EXPECT_NE(ranks[1].map_peer_window(0, other_id), nullptr);  // the view stays until it is forgotten
  ranks[1].forget_peer_window(0, other_id);
  EXPECT_EQ(ranks[1].map_peer_window(0, other_id), nullptr);
}

TEST(Window, NoneOverTcp) {
  Ranks ranks(2, "tcp");
  EXPECT_EQ(ranks[0].allocate_window(100), nullptr);
  EXPECT_EQ(ranks[1].map_peer_window(0, 1), nullptr);
}

// Two processes: each builds its set, they exchange addresses over a socket pair, then `body` runs in both.
template <class Body>
void run_two_processes(const std::string& list, Body body) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  const int rank = child == 0 ? 1 : 0;
  const base::FileDescriptor line(ends[rank]);
  ::close(ends[1 - rank]);
  bool good = false;
  try {
    TransportOptions options;
    options.list = list;
    options.ranks = 2;
    options.interfaces = "lo";
    const auto poller = base::Poller::make_real();
    TransportSet set(System::real(), *poller, make_key(1), rank, options);
    std::vector<std::vector<std::byte>> table(2);
    table[static_cast<std::size_t>(rank)] = set.address();
    auto& theirs = table[static_cast<std::size_t>(1 - rank)];
    theirs.resize(4096);
    const auto& own = table[static_cast<std::size_t>(rank)];
    const bool exchanged = ::send(line.get(), own.data(), own.size(), 0) == static_cast<ssize_t>(own.size());
    const ssize_t got = ::recv(line.get(), theirs.data(), theirs.size(), 0);
    if (exchanged && got > 0) {
      theirs.resize(static_cast<std::size_t>(got));
      set.start(table);
      const ServiceThread service(*poller, [&] { set.service(); });
      good = body(set, rank);
      // Nobody leaves while the other may still need its service thread.
      char byte = 1;
      good = ::send(line.get(), &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(line.get(), &byte, 1, 0) == 1 && good;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
  }
  if (child == 0) ::_exit(good ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(good);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

class Processes : public testing::TestWithParam<const char*> {};

TEST_P(Processes, MessagesCrossBothWays) {
  run_two_processes(GetParam(), [](TransportSet& set, int rank) {
    constexpr std::uint64_t count = 2000;
    SendEnd& send = *set.open_send({1, rank, 1 - rank, 0});
    ReceiveEnd& receive = open_receive(set, {1, 1 - rank, rank, 0});
    std::uint64_t wrong = 0;
    for (std::uint64_t m = 0; m < count; ++m) {
      send_message(set, send, make_message(m + static_cast<std::uint64_t>(rank) * count, 8192));
      wrong += !receive_message(set, receive, make_message(m + static_cast<std::uint64_t>(1 - rank) * count, 8192));
    }
    wait_for(set, send.pump, [&] { return send.drained(); });
    return wrong == 0;
  });
}
INSTANTIATE_TEST_SUITE_P(Over, Processes, testing::Values("shm", "tcp", "shm,tcp"),
                         [](const auto& parameter) { return parameter.index == 2 ? "both" : parameter.param; });

TEST(WindowProcesses, PeerReadsAWindowThroughAReference) {
  constexpr std::size_t bytes = 3'000'000;
  run_two_processes("shm", [](TransportSet& set, int rank) {
    const ConnectionKey key{1, 0, 1, 0};
    if (rank == 0) {
      const auto window = set.allocate_window(bytes);
      for (std::size_t i = 0; i < bytes; ++i) window->data[i] = static_cast<std::byte>(i * 31);
      SendEnd& end = *set.open_send(key);
      if (!end.maps_windows || !end.try_acquire()) return false;
      const WindowReference reference{window->id, 1000};
      std::memcpy(end.line().payload, &reference, sizeof reference);
      end.publish(4, bytes - 1000, PayloadKind::reference);
      end.flush();
      wait_for(set, end.pump, [&] { return end.drained(); });
      return true;
    }
    ReceiveEnd& end = open_receive(set, key);
    const SlotLine* line = nullptr;
    wait_for(set, end.pump, [&] { return (line = end.try_peek()) != nullptr; });
    const WindowReference reference = ReceiveEnd::reference(*line);
    const std::byte* const data = set.map_peer_window(0, reference.window);
    bool same = data != nullptr && set.peer_window_bytes(0, reference.window) >= bytes &&
                ReceiveEnd::length(*line) == bytes - 1000;
    for (std::size_t i = 1000; same && i < bytes; ++i) same = data[i] == static_cast<std::byte>(i * 31);
    end.release();
    end.flush();
    return same;
  });
}

}  // namespace
}  // namespace rondo::transport::test
