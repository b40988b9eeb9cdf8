// Ranks that stop, never call, or abort; settings and keys that differ; ranks that never come.
#include "fault/fault_job.hpp"

#include <gmock/gmock.h>

#include <thread>

namespace rondo::test {
namespace {

using testing::HasSubstr;

TEST(StoppedRank, IsReportedWithinTheHeartbeat) {
  constexpr int ranks = 4;
  for (const int stopped : {0, 3}) {
    SCOPED_TRACE(stopped);
    Job job(ranks, {program("fault_rank"), "small_loop"}, {"RONDO_HEARTBEAT=1s"});
    const auto pids = ready(job, ranks);
    ASSERT_EQ(pids.size(), 4U);
    const std::int64_t since = now_ns();
    kill(pids.at(stopped), SIGSTOP);
    EXPECT_NE(job.finish(), 0);
    expect_reports(job, ranks, stopped, "rank_failed", stopped, since, 5 * second / 2);
    EXPECT_TRUE(has_ended(pids.at(stopped)));
  }
}

TEST(StoppedJob, IsNoFailure) {
  constexpr int ranks = 4;
  Job job(ranks, {program("fault_rank"), "small_loop"}, {"RONDO_HEARTBEAT=1s"});
  const auto pids = ready(job, ranks);
  ASSERT_EQ(pids.size(), 4U);
  for (const auto& [rank, pid] : pids) kill(pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));  // the pause itself
  for (const auto& [rank, pid] : pids) kill(pid, SIGCONT);
  std::this_thread::sleep_for(std::chrono::seconds(3));  // time in which a false alarm would be raised
  for (const auto& [rank, pid] : pids) EXPECT_FALSE(has_ended(pid)) << job.story();
  kill(pids.at(1), SIGKILL);
  const std::int64_t since = now_ns();
  expect_ended_by_kill(job);
  expect_reports(job, ranks, 1, "rank_failed", 1, since, second);
}

TEST(Deadline, NamesTheRankThatHasNotCalled) {
  for (const int missing : {0, 2}) {
    SCOPED_TRACE(missing);
    Job job(4, {program("fault_rank"), "never_call", std::to_string(missing)}, {"RONDO_DEADLINE=1s"});
    EXPECT_EQ(job.finish(), 3) << job.story();
    const auto found = reports(job);
    EXPECT_EQ(found.size(), 4U) << job.story();
    for (const auto& [rank, report] : found) {
      EXPECT_EQ(report.code, "deadline") << job.story();
      EXPECT_THAT(report.text, HasSubstr("rank " + std::to_string(missing) + " has not called it")) << job.story();
      EXPECT_EQ(count(report.text, "has not called it"), 2) << job.story();  // once more in the hint
    }
  }
}

class Abort : public testing::TestWithParam<const char*> {};
TEST_P(Abort, FromAnotherThreadEndsEveryWait) {
  Job job(4, {program("fault_rank"), "abort", "1"}, {std::string("RONDO_TRANSPORTS=") + GetParam()});
  EXPECT_EQ(job.finish(), 3) << job.story();
  const auto died = job.lines("DIED");
  ASSERT_EQ(died.size(), 1U) << job.story();
  const auto found = reports(job);
  EXPECT_EQ(found.size(), 4U) << job.story();
  for (const auto& [rank, report] : found) {
    EXPECT_EQ(report.code, "aborted") << job.story();
    EXPECT_THAT(report.text, HasSubstr("rank 1 of world aborted: enough")) << job.story();
    EXPECT_LE(report.when - std::stoll(died.at(1)), second) << job.story();
  }
}
INSTANTIATE_TEST_SUITE_P(Everyday, Abort, testing::Values("shm", "tcp"));

// All four ranks of a job that cannot begin, with what each must say.
void expect_refused(const std::vector<std::string>& variables, const std::vector<std::string>& parts,
                    std::size_t reporting = 4) {
  Job job(4, {program("fault_rank"), "nothing", "2"}, variables);
  EXPECT_EQ(job.finish(), 3) << job.story();
  const auto found = reports(job);
  EXPECT_EQ(found.size(), reporting) << job.story();
  for (const auto& [rank, report] : found) {
    for (const std::string& part : parts) EXPECT_THAT(report.text, HasSubstr(part)) << job.story();
  }
}

TEST(Joining, NamesATuningVariableThatDiffers) {
  expect_refused({"TEST_OWN_VARIABLE=RONDO_ALGO=all_reduce:0-inf=ring"},
                 {"RONDO_ALGO", "all_reduce:0-inf=ring", "rank 2"});
}
TEST(Joining, NamesTransportsThatDiffer) {
  expect_refused({"TEST_OWN_VARIABLE=RONDO_TRANSPORTS=tcp"}, {"RONDO_TRANSPORTS", "rank 2"});
}
TEST(Joining, RefusesUnknownVariables) {
  // The launcher looks first; a rank whose own environment is wrong says so itself.
  Job job(4, {program("fault_rank"), "nothing"}, {"RONDO_HEARTBEET=1s"});
  EXPECT_EQ(job.finish(), 125) << job.story();
  EXPECT_THAT(job.text(), HasSubstr("the environment sets RONDO_HEARTBEET")) << job.story();
  Job own(4, {program("fault_rank"), "nothing", "2"},
          {"TEST_OWN_VARIABLE=RONDO_HEARTBEET=1s", "RONDO_JOIN_DEADLINE=1s"});
  EXPECT_EQ(own.finish(), 3) << own.story();
  const auto found = reports(own);
  ASSERT_EQ(found.count(2), 1U) << own.story();
  EXPECT_EQ(found.at(2).code, "configuration") << own.story();
  EXPECT_THAT(found.at(2).text, HasSubstr("the nearest one is RONDO_HEARTBEAT")) << own.story();
}
TEST(Joining, RefusesUnknownValues) {
  expect_refused({"RONDO_TRANSPORTS=shm,carrier_pigeon"}, {"carrier_pigeon", "shm and tcp"});
}
TEST(Joining, RefusesAnotherKey) {
  // Rank 2's key differs in one digit from the one that `rondo run` made: it can't prove itself to anybody.
  Job job(4, {program("fault_rank"), "nothing", "2"}, {"TEST_WRONG_KEY=1", "RONDO_JOIN_DEADLINE=1s"});
  EXPECT_EQ(job.finish(), 3) << job.story();
  const auto found = reports(job);
  ASSERT_EQ(found.size(), 4U) << job.story();
  EXPECT_EQ(found.at(2).code, "authentication") << job.story();
  for (const int rank : {0, 1, 3}) EXPECT_THAT(found.at(rank).text, HasSubstr("rank 2")) << job.story();
}
TEST(Joining, NamesAMissingRank) { expect_refused({"TEST_MISSING_RANK=2", "RONDO_JOIN_DEADLINE=1s"}, {"rank 2"}, 3); }

}  // namespace
}  // namespace rondo::test
