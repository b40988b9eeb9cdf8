// Two hosts made of network namespaces joined by a cable (veth): shared memory within a host, tcp between them.
//
// Needs root and `ip`; skips otherwise. The namespaces go with the test.
#include "multiprocess/job.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <memory>

namespace rondo::test {
namespace {

using testing::HasSubstr;

bool quietly(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

class Hosts : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can make network namespaces";
    if (!quietly("ip -V")) GTEST_SKIP() << "there is no `ip` (Debian package iproute2)";
    if (!quietly("ip netns add " + first_)) GTEST_SKIP() << "this system does not let us make network namespaces";
    ASSERT_TRUE(quietly("ip netns add " + second_));
    ASSERT_TRUE(quietly("ip -n " + first_ + " link add cable type veth peer name cable netns " + second_));
    for (const std::string& host : {first_, second_}) {
      ASSERT_TRUE(quietly("ip -n " + host + " link set lo up"));
      ASSERT_TRUE(quietly("ip -n " + host + " link set cable up"));
    }
  }
  void TearDown() override {
    quietly("ip netns del " + first_);
    quietly("ip netns del " + second_);
  }
  void give_addresses(const std::string& a, const std::string& b) {
    // No duplicate-address detection: the address can be used at once.
    const std::string options = a.find(':') == std::string::npos ? "" : " nodad";
    ASSERT_TRUE(quietly("ip -n " + first_ + " address add " + a + " dev cable" + options));
    ASSERT_TRUE(quietly("ip -n " + second_ + " address add " + b + " dev cable" + options));
  }
  // Two ranks on each host, the launcher on the first.
  std::unique_ptr<Job> start(const std::vector<std::string>& command, std::vector<std::string> variables = {}) {
    return std::make_unique<Job>(
        std::vector<std::string>{"-n", "4", "--hosts", first_ + "," + second_, "--agent", "ip netns exec {host}"},
        command, std::move(variables), std::chrono::seconds(60),
        std::vector<std::string>{"ip", "netns", "exec", first_});
  }
  void expect_right_values() {
    const auto job = start({program("all_reduce_perf"), "-b", "8", "-e", "4M", "-f", "8", "-n", "3", "-c", "1"},
                           {"RONDO_DEBUG=INFO"});
    EXPECT_EQ(job->finish(), 0) << job->story();
    EXPECT_EQ(count(job->text(), "# Out of bounds values : 0 OK"), 1) << job->story();
    // Each rank tells how it reaches whom: one neighbour by shared memory, two by tcp; and that wires are among them
    // decides for all alike.
    for (int rank = 0; rank < 4; ++rank) {
      const std::string choice =
          "[" + std::to_string(rank) + "] RONDO INFO PLAN all_reduce from 8 bytes: recursive_doubling";
      EXPECT_EQ(count(job->text(), choice), 1) << choice << " is missing in " << job->story();
      for (int peer = 0; peer < 4; ++peer) {
        if (peer == rank) continue;
        const std::string path = "[" + std::to_string(rank) + "] RONDO INFO NET to rank " + std::to_string(peer) +
                                 " by " + (rank / 2 == peer / 2 ? "shm" : "tcp");
        EXPECT_EQ(count(job->text(), path), 1) << path << " is missing in " << job->story();
      }
    }
  }

  const std::string first_ = "rondo-a-" + std::to_string(getpid());
  const std::string second_ = "rondo-b-" + std::to_string(getpid());
};

TEST_F(Hosts, ShareMemoryInsideAndTcpBetweenOverIpv4) {
  give_addresses("10.77.0.1/24", "10.77.0.2/24");
  expect_right_values();
}

TEST_F(Hosts, WorkWithIpv6Alone) {
  give_addresses("fd77::1/64", "fd77::2/64");
  expect_right_values();
}

TEST_F(Hosts, EveryProgramIsRightBetweenThem) {
  give_addresses("10.77.0.1/24", "10.77.0.2/24");
  for (const char* benchmark : {"all_gather_perf", "reduce_scatter_perf", "broadcast_perf", "reduce_perf",
                                "alltoall_perf", "gather_perf", "scatter_perf", "sendrecv_perf"}) {
    const auto job = start({program(benchmark), "-b", "8", "-e", "512K", "-f", "64", "-n", "2", "-c", "1"});
    EXPECT_EQ(job->finish(), 0) << job->story();
    EXPECT_EQ(count(job->text(), "# Out of bounds values : 0 OK"), 1) << job->story();
  }
}

TEST_F(Hosts, ACutCableIsAnErrorOnBothSides) {
  give_addresses("10.77.0.1/24", "10.77.0.2/24");
  // One size for ever, until the cable goes.
  const auto job = start({program("all_reduce_perf"), "-b", "1M", "-e", "1M", "-n", "20", "-N", "0", "-c", "0"},
                         {"RONDO_HEARTBEAT=1s"});
  ASSERT_TRUE(job->read_until("1048576", 3)) << job->story();
  ASSERT_TRUE(quietly("ip -n " + first_ + " link set cable down"));
  const std::int64_t cut = now_ns();
  EXPECT_EQ(job->finish(), 3) << job->story();
  EXPECT_LE(now_ns() - cut, 8'000'000'000) << job->story();
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(job->text(), HasSubstr("[" + std::to_string(rank) + "] rank " + std::to_string(rank) + ": "))
        << job->story();
  }
}

}  // namespace
}  // namespace rondo::test
