// Ranks that die, leave or throw: the others say who, within a second; nothing hangs and nothing is left.
#include "fault/fault_job.hpp"

#include <random>
#include <thread>

namespace rondo::test {
namespace {

class Transports : public testing::TestWithParam<const char*> {
 protected:
  std::vector<std::string> variables(std::vector<std::string> more = {}) const {
    more.push_back(std::string("RONDO_TRANSPORTS=") + GetParam());
    return more;
  }
};

std::string list_name(const testing::TestParamInfo<const char*>& which) {
  return std::string(which.param) == "tcp" ? "tcp" : "shm";
}

// Kills a random rank of a loop of large all_reduces after a random time.
void kill_one(int ranks, std::mt19937& random, const std::vector<std::string>& variables) {
  const auto names = named_shared_memory();
  const int dead = std::uniform_int_distribution(0, ranks - 1)(random);
  const std::chrono::microseconds pause(std::uniform_int_distribution(0, 300'000)(random));
  SCOPED_TRACE("rank " + std::to_string(dead) + " killed after " + std::to_string(pause.count()) + " us");
  Job job(ranks, {program("fault_rank"), "loop"}, variables);
  const auto pids = ready(job, ranks);
  ASSERT_EQ(pids.size(), static_cast<std::size_t>(ranks)) << job.story();
  std::this_thread::sleep_for(pause);  // the random moment itself; nothing is waited for
  const std::int64_t killed = now_ns();
  kill(pids.at(dead), SIGKILL);
  expect_ended_by_kill(job);
  expect_reports(job, ranks, dead, "rank_failed", dead, killed, second);
  for (const auto& [rank, pid] : pids) EXPECT_TRUE(has_ended(pid)) << "rank " << rank;
  EXPECT_EQ(named_shared_memory(), names);
}

class KilledRank : public Transports {};
TEST_P(KilledRank, IsReportedByEverySurvivorWithinASecond) {
  std::mt19937 random(20'240'601);
  for (int i = 0; i < 5; ++i) kill_one(4, random, variables());
}
TEST_P(KilledRank, IsReportedAmongTwo) {
  std::mt19937 random(7);
  for (int i = 0; i < 3; ++i) kill_one(2, random, variables());
}
INSTANTIATE_TEST_SUITE_P(Everyday, KilledRank, testing::Values("shm,tcp", "tcp"), list_name);

class KilledRankLong : public Transports {};
TEST_P(KilledRankLong, IsReportedFiftyTimes) {
  std::mt19937 random(50);
  for (int i = 0; i < 50; ++i) kill_one(4, random, variables());
}
INSTANTIATE_TEST_SUITE_P(All, KilledRankLong, testing::Values("shm,tcp", "tcp"), list_name);

// Joining takes some tens of milliseconds: the moment falls before, into and behind it.
TEST_P(KilledRank, WhileJoiningIsNamedByEverySurvivor) {
  constexpr int ranks = 4;
  std::mt19937 random(99);
  for (int i = 0; i < 8; ++i) {
    const int dead = i % ranks;
    const std::chrono::microseconds pause(std::uniform_int_distribution(0, 40'000)(random));
    SCOPED_TRACE("rank " + std::to_string(dead) + " killed after " + std::to_string(pause.count()) + " us");
    Job job(ranks, {program("fault_rank"), "small_loop"}, variables({"RONDO_JOIN_DEADLINE=1s"}));
    const auto pids = ready(job, ranks, "STARTED");
    ASSERT_EQ(pids.size(), static_cast<std::size_t>(ranks)) << job.story();
    std::this_thread::sleep_for(pause);  // the random moment itself
    const std::int64_t killed = now_ns();
    kill(pids.at(dead), SIGKILL);
    expect_ended_by_kill(job);
    const auto found = reports(job);
    for (int r = 0; r < ranks; ++r) {
      if (r == dead) continue;
      ASSERT_EQ(found.count(r), 1U) << job.story();
      EXPECT_NE(found.at(r).text.find("rank " + std::to_string(dead)), std::string::npos) << job.story();
      EXPECT_LE(found.at(r).when - killed, 3 * second / 2) << job.story();
    }
  }
}

class LeavingRank : public Transports {
 protected:
  // The chosen rank prints DIED with the time just before.
  void expect_named(const std::string& scenario, int chosen, int exit_code) {
    constexpr int ranks = 4;
    Job job(ranks, {program("fault_rank"), scenario, std::to_string(chosen)}, variables());
    const int code = job.finish();
    EXPECT_EQ(code, exit_code) << job.story();
    const auto died = job.lines("DIED");
    ASSERT_EQ(died.size(), 1U) << job.story();
    expect_reports(job, ranks, chosen, "rank_failed", chosen, std::stoll(died.at(chosen)), second);
  }
};
TEST_P(LeavingRank, ThatIsKilledWhileItsForkedChildLivesIsNoticed) {
  constexpr int ranks = 4;
  Job job(ranks, {program("fault_rank"), "die_with_child", "2"}, variables());
  expect_ended_by_kill(job);
  const auto child = job.lines("CHILD");
  ASSERT_EQ(child.size(), 1U) << job.story();
  // It sleeps for ever; the launcher ends it after the ranks, so the reports below came while it lived.
  EXPECT_TRUE(has_ended(std::stoi(child.at(2)))) << job.story();
  const auto died = job.lines("DIED");
  ASSERT_EQ(died.size(), 1U) << job.story();
  expect_reports(job, ranks, 2, "rank_failed", 2, std::stoll(died.at(2)), second);
}
TEST_P(LeavingRank, ThatExitsWithoutCloseIsNamed) {
  expect_named("exit_without_close", 1, 3);
  expect_named("exit_without_close", 0, 3);
}
TEST_P(LeavingRank, ThatSkipsAllDestructorsIsNamed) { expect_named("exit_at_once", 3, 3); }
TEST_P(LeavingRank, ThatThrowsOutOfMainIsNamed) { expect_named("throw_out_of_main", 2, 128 + SIGABRT); }
INSTANTIATE_TEST_SUITE_P(Everyday, LeavingRank, testing::Values("shm,tcp", "tcp"), list_name);

class ForkedChild : public Transports {};
TEST_P(ForkedChild, IsRefusedAndHarmsNobody) {
  Job job(2, {program("fault_rank"), "use_in_child", "1"}, variables());
  EXPECT_EQ(job.finish(), 0) << job.story();
  const auto child = job.lines("CHILD");
  ASSERT_EQ(child.size(), 1U) << job.story();
  EXPECT_EQ(child.at(1), "0") << job.story();
}
INSTANTIATE_TEST_SUITE_P(Everyday, ForkedChild, testing::Values("shm,tcp", "tcp"), list_name);

}  // namespace
}  // namespace rondo::test
