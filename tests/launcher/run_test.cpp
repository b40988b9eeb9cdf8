#include "launcher/launched_program.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace rondo::tools {
namespace {

std::vector<std::string> shell(int ranks, const std::string& script, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"-n", std::to_string(ranks)});
  options.insert(options.end(), {"--", "sh", "-c", script});
  return options;
}

std::multiset<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::multiset<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

using Lines = std::multiset<std::string>;

void expect_in_order(const std::string& text, std::initializer_list<const char*> parts) {
  std::size_t at = 0;
  for (const char* part : parts) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << "'" << part << "' is missing, or too early, in:\n" << text;
  }
}

TEST(Run, RanksFindTheirPlaceInTheEnvironment) {
  LaunchedProgram run(shell(3, "echo $RONDO_RANK $RONDO_SIZE $RONDO_LOCAL_RANK $RONDO_LOCAL_SIZE ${#RONDO_UNIQUE_ID}"));
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(lines_of(run.output()), (Lines{"[0] 0 3 0 3 256", "[1] 1 3 1 3 256", "[2] 2 3 2 3 256"}));
  EXPECT_EQ(run.error(), "");
}

TEST(Run, OuterLaunchersVariablesDoNotReachTheRanks) {
  LaunchedProgram run(shell(1, "echo \"<$RANK$WORLD_SIZE$SLURM_PROCID$OMPI_COMM_WORLD_RANK$RONDO_ROOT>\""),
                      {"RANK=5", "WORLD_SIZE=8", "SLURM_PROCID=1", "OMPI_COMM_WORLD_RANK=2", "RONDO_ROOT=a:1"});
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.output(), "<>\n");
}

TEST(Run, StreamsStayApartAndLinesWhole) {
  LaunchedProgram run(shell(2, "printf 'to '; printf 'out\\n'; printf 'to err\\n' >&2; printf unfinished"));
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(lines_of(run.output()), (Lines{"[0] to out", "[0] unfinished", "[1] to out", "[1] unfinished"}));
  EXPECT_EQ(lines_of(run.error()), (Lines{"[0] to err", "[1] to err"}));
}

TEST(Run, ManyLinesOfManyRanksStayWhole) {
  LaunchedProgram run(shell(8, "i=0; while [ $i -lt 200 ]; do echo line $i of $RONDO_RANK; i=$((i+1)); done"));
  EXPECT_EQ(run.finish(), 0);
  std::istringstream stream(run.output());
  std::map<std::string, int> next;
  int count = 0;
  for (std::string line; std::getline(stream, line); ++count) {
    const std::string rank = line.substr(1, line.find(']') - 1);
    EXPECT_EQ(line, "[" + rank + "] line " + std::to_string(next[rank]++) + " of " + rank);
  }
  EXPECT_EQ(count, 1600);
}

TEST(Run, PrefixCanBeTurnedOff) {
  LaunchedProgram run(shell(2, "echo x", {"--no-prefix"}));
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.output(), "x\nx\n");
}

TEST(Run, OneRankHasNoPrefix) {
  LaunchedProgram run(shell(1, "printf x"));
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.output(), "x");
}

TEST(Run, Rank0AloneReadsStandardInput) {
  LaunchedProgram run(shell(3, "cat"), {}, "typed\n");
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.output(), "[0] typed\n");
}

TEST(Run, ArgumentsBehindTheDashesAreTheProgramsOwn) {
  LaunchedProgram run({"-n", "1", "--", "printf", "<%s>", "-n", "--", "a b", ""});
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.output(), "<-n><--><a b><>");
}

TEST(Run, FirstFailuresCodeIsReturnedAndItsRankNamed) {
  LaunchedProgram run(shell(3, "[ $RONDO_RANK = 2 ] && exit 7; exec sleep 1000"));
  EXPECT_EQ(run.finish(), 7);
  expect_in_order(run.error(), {"rondo run: rank 2 (pid ", ") exited with code 7\n", "ranks 0-1 with SIGTERM"});
  EXPECT_EQ(LaunchedProgram::count(run.error(), "(pid"), 1) << run.error();
}

TEST(Run, DeathByASignalIs128AndItsNumber) {
  LaunchedProgram run(shell(2, "[ $RONDO_RANK = 1 ] && kill -KILL $$; exec sleep 1000"));
  EXPECT_EQ(run.finish(), 128 + SIGKILL);
  expect_in_order(run.error(), {"rank 1 (pid ", ") was killed by SIGKILL\n"});
}

TEST(Run, ARanksLastWordsComeBeforeTheReport) {
  LaunchedProgram run(shell(1, "true"));
  EXPECT_EQ(run.finish(), 0);
  LaunchedProgram failing(shell(2, "echo last words >&2; exit 4"));
  EXPECT_EQ(failing.finish(), 4);
  expect_in_order(failing.error(), {"last words", "exited with code 4"});
}

TEST(Run, OthersThatEndByThemselvesAreNotSignalled) {
  // Rank 0 notices as a peer does: the other end closes.
  const std::string script =
      "f=$RONDO_TEST_DIRECTORY; if [ $RONDO_RANK = 1 ]; then exec 3>$f; exit 3; fi; cat $f; echo noticed";
  std::string directory = "/tmp/rondo_run_test.XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string fifo = directory + "/fifo";
  ASSERT_EQ(std::system(("mkfifo " + fifo).c_str()), 0);
  std::string named = script;
  named.replace(named.find("$RONDO_TEST_DIRECTORY"), std::string("$RONDO_TEST_DIRECTORY").size(), fifo);
  LaunchedProgram run(shell(2, named));
  EXPECT_EQ(run.finish(), 3);
  EXPECT_EQ(run.output(), "[0] noticed\n");
  EXPECT_EQ(run.error().find("SIGTERM"), std::string::npos) << run.error();
  std::remove(fifo.c_str());
  rmdir(directory.c_str());
}

// Rank 1 looks as a dying process does (programs/slow_death.cpp); rank 0 notices and exits with 3 meanwhile.
struct SlowDeath {
  explicit SlowDeath(const std::string& end) {
    EXPECT_NE(mkdtemp(directory.data()), nullptr);
    const std::string fifo = directory + "/fifo";
    EXPECT_EQ(std::system(("mkfifo " + fifo).c_str()), 0);
    run.emplace(shell(2, "if [ $RONDO_RANK = 1 ]; then exec " RONDO_PROGRAM_DIR "/slow_death " + fifo + " " + end +
                             "; fi; read line <" + fifo + "; exit 3"));
  }
  ~SlowDeath() {
    std::remove((directory + "/fifo").c_str());
    rmdir(directory.c_str());
  }
  std::string directory = "/tmp/rondo_run_test.XXXXXX";
  std::optional<LaunchedProgram> run;
};

TEST(Run, TheRankThatDiedFirstIsNamedThoughAPeerWasReapedBefore) {
  SlowDeath late("die");
  EXPECT_EQ(late.run->finish(), 128 + SIGKILL);
  expect_in_order(late.run->error(),
                  {"rank 1 (pid ", ") was killed by SIGKILL\n", "rank 0 (pid ", ") exited with code 3\n"});
}

TEST(Run, ARankOfWhichOneThreadEndedIsNotTakenForTheFirstFailure) {
  SlowDeath late("live");
  EXPECT_EQ(late.run->finish(), 3);
  expect_in_order(late.run->error(), {"rank 0 (pid ", ") exited with code 3\n", "rank 1 with SIGTERM"});
}

TEST(Run, ReportThenTermThenKill) {
  // Rank 0 announces that it is deaf to SIGTERM before rank 1 may fail.
  std::string directory = "/tmp/rondo_run_test.XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string fifo = directory + "/fifo";
  ASSERT_EQ(std::system(("mkfifo " + fifo).c_str()), 0);
  LaunchedProgram run(shell(2, "if [ $RONDO_RANK = 1 ]; then read x <" + fifo +
                                   "; exit 3; fi; trap 'echo term' TERM; " + "echo go >" + fifo +
                                   "; while :; do sleep 0.05; done"));
  EXPECT_EQ(run.finish(), 3);
  EXPECT_EQ(run.output(), "[0] term\n");
  expect_in_order(run.error(),
                  {"rank 1 (pid", "exited with code 3", "ending rank 0 with SIGTERM", "killing rank 0 with SIGKILL"});
  std::remove(fifo.c_str());
  rmdir(directory.c_str());
}

TEST(Run, SignalsReachEveryRank) {
  for (const auto& [number, name] : std::map<int, std::string>{
           {SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}}) {
    LaunchedProgram run(shell(3, "trap 'echo got " + name + "; kill $!; exit 0' " + name +
                                     "; sleep 1000 & echo ready; while :; do wait; done"));
    ASSERT_TRUE(run.read_until("ready", 3));
    run.signal(number);
    EXPECT_EQ(run.finish(), 0) << name << run.error();
    EXPECT_EQ(LaunchedProgram::count(run.output(), "got " + name + "\n"), 3) << run.output();
  }
}

TEST(Run, SignalsMayBeSurvived) {
  LaunchedProgram run(shell(2,
                            "trap 'echo checkpoint' USR1; trap 'kill $!; exit 0' TERM; sleep 1000 & echo ready; "
                            "while :; do wait; done"));
  ASSERT_TRUE(run.read_until("ready", 2));
  run.signal(SIGUSR1);
  ASSERT_TRUE(run.read_until("checkpoint", 2));
  run.signal(SIGTERM);
  EXPECT_EQ(run.finish(), 0);
}

TEST(Run, ProgramsFindSignalsAsTheLauncherFoundThem) {
  LaunchedProgram run({"-n", "1", "--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.output(), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(Run, TimeoutEndsTheRanksWith124) {
  LaunchedProgram run(shell(2, "exec sleep 1000", {"--timeout", "0.2"}));
  EXPECT_EQ(run.finish(), 124);
  expect_in_order(run.error(), {"not done after 200ms", "ranks 0-1 with SIGTERM"});
}

TEST(Run, RanksDieWithTheLauncher) {
  LaunchedProgram run(shell(2, "echo pid $$; exec sleep 1000"));
  ASSERT_TRUE(run.read_until("pid", 2));
  std::vector<std::unique_ptr<ProcessWatch>> watches;
  for (const std::string& line : lines_of(run.output())) {
    watches.push_back(std::make_unique<ProcessWatch>(std::stoi(line.substr(line.rfind(' ')))));
    ASSERT_TRUE(watches.back()->valid());
  }
  run.signal(SIGKILL);
  for (const auto& watch : watches) EXPECT_TRUE(watch->ends());
}

TEST(Run, WhatARankLeftBehindEndsToo) {
  LaunchedProgram run(shell(2, "sleep 1000 & echo pid $!; [ $RONDO_RANK = 0 ] && wait"));
  ASSERT_TRUE(run.read_until("pid", 2));
  const ProcessWatch first(std::stoi(run.output().substr(run.output().rfind(' '))));
  run.signal(SIGTERM);
  run.finish();
  EXPECT_TRUE(!first.valid() || first.ends());
}

TEST(Run, AReaderThatGoesEndsTheRanksAsInAnyPipe) {
  ASSERT_EQ(std::system((std::string(RONDO_CLI_PATH) + " run -n 2 -- yes 2>/dev/null | head -n 1 >/dev/null").c_str()),
            0);
}

TEST(RunRefuses, WhatCannotBeStarted) {
  LaunchedProgram missing({"-n", "3", "--", "no-such-program-here"});
  EXPECT_EQ(missing.finish(), 127);
  expect_in_order(missing.error(), {"no-such-program-here", "PATH"});
  EXPECT_EQ(LaunchedProgram::count(missing.error(), "\n"), 1);
  LaunchedProgram forbidden({"-n", "2", "--", "/etc/passwd"});
  EXPECT_EQ(forbidden.finish(), 126);
  expect_in_order(forbidden.error(), {"/etc/passwd", "Permission denied"});
}

struct BadCommandLine {
  std::vector<std::string> arguments;
  std::vector<const char*> words;
};

TEST(RunRefuses, BadCommandLinesSayingWhatWorks) {
  const std::vector<BadCommandLine> all = {
      {{"-n", "0", "--", "true"}, {"-n 0", "1 to 65536", "rondo run -n 4 --"}},
      {{"-n", "-3", "--", "true"}, {"-3"}},
      {{"-n", "four", "--", "true"}, {"-n four"}},
      {{"-n", "65537", "--", "true"}, {"65537"}},
      {{"-n", "2", "true"}, {"'true'", "put -- before the program"}},
      {{"-n", "2"}, {"-- and the program are missing"}},
      {{"-n", "2", "--"}, {"no program behind --"}},
      {{"--bogus", "-n", "2", "--", "true"}, {"--bogus"}},
      {{"-n", "2", "--timeout", "soon", "--", "true"}, {"--timeout soon", "10min"}},
      {{"-n", "2", "--timeout", "0", "--", "true"}, {"above zero"}},
      {{"-n", "2", "--timeout", "5m", "--", "true"}, {"--timeout 5m", "10min"}},  // no five milliseconds
      {{"-n", "2", "--hosts", "a,,b", "--", "true"}, {"a,,b"}},
      {{"-n", "2", "--hosts", "a,a", "--", "true"}, {"'a' is named twice"}},
      {{"-n", "2", "--hosts", "-oProxyCommand=x", "--", "true"}, {"is no host"}},
      {{"-n", "1", "--hosts", "a,b", "--", "true"}, {"2 hosts"}},
      {{"-n", "2", "--agent", "ssh", "--", "true"}, {"--agent", "--hosts"}},
      {{"-n", "2", "--hosts", "a", "--agent", "sh 'x", "--", "true"}, {"--agent", "not closed"}},
  };
  for (const BadCommandLine& bad : all) {
    LaunchedProgram run(bad.arguments);
    EXPECT_EQ(run.finish(), 2) << run.error();
    for (const char* word : bad.words) EXPECT_NE(run.error().find(word), std::string::npos) << word << run.error();
  }
}

TEST(RunRefuses, MisspeltVariablesOnceForAllRanks) {
  LaunchedProgram run(shell(4, "echo started"), {"RONDO_DEADLNIE=5s"});
  EXPECT_EQ(run.finish(), 125);
  expect_in_order(run.error(), {"RONDO_DEADLNIE", "RONDO_DEADLINE"});
  EXPECT_EQ(run.output(), "");
}

std::vector<std::string> on_hosts(int ranks, const std::string& hosts, const std::string& agent,
                                  const std::string& script) {
  return shell(ranks, script, {"--hosts", hosts, "--agent", agent});
}

TEST(RunOnHosts, RanksAreInBlocks) {
  LaunchedProgram run(on_hosts(5, "a,b", "env AT={host}", "echo $AT $RONDO_RANK $RONDO_LOCAL_RANK/$RONDO_LOCAL_SIZE"));
  EXPECT_EQ(run.finish(), 0) << run.error();
  EXPECT_EQ(lines_of(run.output()), (Lines{"[0] a 0 0/3", "[1] a 1 1/3", "[2] a 2 2/3", "[3] b 3 0/2", "[4] b 4 1/2"}));
}

TEST(RunOnHosts, CommandMayBeOneWordForAShell) {
  LaunchedProgram run(on_hosts(2, "a,b", "sh -c \"AT={host} exec {command}\"", "echo \"$AT\" 'a  b'"));
  EXPECT_EQ(run.finish(), 0) << run.error();
  EXPECT_EQ(lines_of(run.output()), (Lines{"[0] a a  b", "[1] b a  b"}));
}

TEST(RunOnHosts, VariablesAndDirectoryGoAlong) {
  LaunchedProgram run(on_hosts(1, "a", "env -i PATH=/usr/bin:/bin", "echo $RONDO_DEADLINE; pwd"),
                      {"RONDO_DEADLINE=7s"});
  EXPECT_EQ(run.finish(), 0) << run.error();
  char directory[4096];
  ASSERT_NE(getcwd(directory, sizeof directory), nullptr);
  EXPECT_EQ(run.output(), "7s\n" + std::string(directory) + "\n");
}

TEST(RunOnHosts, KeyIsOnNoCommandLine) {
  LaunchedProgram run(on_hosts(2, "a,b", "env",
                               "echo id $RONDO_UNIQUE_ID; tr '\\0' ' ' </proc/$PPID/cmdline; echo; "
                               "tr '\\0' '\\n' </proc/$PPID/environ | grep -c UNIQUE"));
  run.finish();
  // The id itself is the one occurrence of its digits in each rank's output.
  const std::size_t at = run.output().find("id ");
  ASSERT_NE(at, std::string::npos) << run.error();
  const std::string id = run.output().substr(at + 3, 256);
  EXPECT_EQ(LaunchedProgram::count(run.output(), id), 2);
  EXPECT_EQ(LaunchedProgram::count(run.output(), "run-agent"), 2);
  EXPECT_EQ(LaunchedProgram::count(run.output(), "] 0\n"), 2) << run.output();
}

TEST(RunOnHosts, FailuresNameRankAndHost) {
  LaunchedProgram run(on_hosts(2, "a,b", "env", "[ $RONDO_RANK = 1 ] && kill -KILL $$; exec sleep 1000"));
  EXPECT_EQ(run.finish(), 128 + SIGKILL);
  expect_in_order(run.error(), {"rank 1 (on b) was killed by SIGKILL", "rank 0 with SIGTERM"});
}

TEST(RunOnHosts, MissingProgramNamesTheHost) {
  LaunchedProgram run({"-n", "1", "--hosts", "a", "--agent", "env", "--", "no-such-program-here"});
  EXPECT_EQ(run.finish(), 127);
  expect_in_order(run.error(), {"no-such-program-here", "host a", "rank 0 (on a) exited with code 127"});
}

TEST(RunOnHosts, SignalsReachThePrograms) {
  LaunchedProgram run(on_hosts(
      2, "a,b", "env", "trap 'echo got USR1; kill $!; exit 0' USR1; sleep 1000 & echo ready; while :; do wait; done"));
  ASSERT_TRUE(run.read_until("ready", 2));
  run.signal(SIGUSR1);
  EXPECT_EQ(run.finish(), 0) << run.error();
  EXPECT_EQ(LaunchedProgram::count(run.output(), "got USR1\n"), 2);
}

TEST(RunOnHosts, ProgramsDieWithTheLauncher) {
  LaunchedProgram run(on_hosts(1, "a", "env", "echo pid $$; exec sleep 1000"));
  ASSERT_TRUE(run.read_until("pid", 1));
  const ProcessWatch watch(std::stoi(run.output().substr(run.output().rfind(' '))));
  ASSERT_TRUE(watch.valid());
  run.signal(SIGKILL);
  EXPECT_TRUE(watch.ends());
}

}  // namespace
}  // namespace rondo::tools
