#include "bootstrap/launch_environment.hpp"

#include <rondo/error.hpp>

#include "base/socket.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/launch_sources.hpp"
#include "bootstrap/nodelist.hpp"
#include "bootstrap/rendezvous.hpp"
#include "bootstrap/secret.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace rondo::bootstrap {
namespace {

using Variables = std::map<std::string, std::string>;

Lookup lookup_in(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
}

LaunchDescription describe(const Variables& variables) { return describe_launch(lookup_in(variables)); }

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

template <class Call>
void expect_refusal(Call&& call, std::initializer_list<const char*> words) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::configuration) << e.what();
    for (const char* word : words) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << "'" << word << "' in: " << e.what();
    }
    return;
  }
  ADD_FAILURE() << "nothing was refused; expected: " << *words.begin();
}

void expect_refused(const Variables& variables, std::initializer_list<const char*> words) {
  expect_refusal([&] { describe(variables); }, words);
}

const Variables torchrun = {{"RANK", "1"},
                            {"WORLD_SIZE", "4"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "10.0.0.7"},
                            {"MASTER_PORT", "29500"},
                            {"TORCHELASTIC_RUN_ID", "job"}};
const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"OMPI_MCA_ess_base_jobid", "123456"}};
const Variables slurm = {{"SLURM_PROCID", "3"},
                         {"SLURM_NTASKS", "4"},
                         {"SLURM_JOB_ID", "77"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NODELIST", "node[03-05,7]"}};

TEST(Launch, NoLauncherShowsHowToStart) {
  expect_refused({}, {"no launcher", "rondo run -n 4 -- program"});
  expect_refused({{"RONDO_ROOT", "a:1"}}, {"no launcher", "RONDO_ROOT"});
}

TEST(Launch, EmptyVariablesAreUnset) {
  expect_refused({{"RANK", ""}, {"WORLD_SIZE", ""}, {"RONDO_RANK", ""}}, {"no launcher"});
}

TEST(Launch, RondoRunGivesTheId) {
  const auto d = describe({{"RONDO_RANK", "1"}, {"RONDO_SIZE", "2"}, {"RONDO_UNIQUE_ID", "abc"}});
  EXPECT_EQ(d.source, "rondo run");
  EXPECT_EQ(d.rank, 1);
  EXPECT_EQ(d.size, 2);
  EXPECT_EQ(d.unique_id, "abc");
}

TEST(Launch, RondoRootByHand) {
  auto d = describe({{"RONDO_RANK", "0"}, {"RONDO_SIZE", "2"}, {"RONDO_ROOT", "10.0.0.1:29555"}});
  EXPECT_EQ(d.root_host, "10.0.0.1");
  EXPECT_EQ(d.root_port, 29555);
  EXPECT_FALSE(d.single_host);
  d = describe({{"RONDO_RANK", "0"}, {"RONDO_SIZE", "2"}, {"RONDO_ROOT", "[::1]:5"}});
  EXPECT_EQ(d.root_host, "::1");
  EXPECT_EQ(d.root_port, 5);
  EXPECT_TRUE(d.single_host);
}

TEST(Launch, MalformedRootSaysWhatWorks) {
  for (const char* root : {"host", "host:", ":1", "host:0", "host:65536", "host:1x", "2001:db8::1:5", "[]:1"}) {
    expect_refused({{"RONDO_RANK", "0"}, {"RONDO_SIZE", "2"}, {"RONDO_ROOT", root}},
                   {"RONDO_ROOT=", root, "host:port", "10.0.0.1:29555"});
  }
}

TEST(Launch, TorchrunsPortIsTheAgentsSoTheNextIsOurs) {
  const auto d = describe(torchrun);
  EXPECT_EQ(d.source, "torchrun");
  EXPECT_EQ(d.rank, 1);
  EXPECT_EQ(d.size, 4);
  EXPECT_EQ(d.root_host, "10.0.0.7");
  EXPECT_EQ(d.root_port, 29501);
  EXPECT_FALSE(d.single_host);
  EXPECT_EQ(port_beside(65534), 65535);
  EXPECT_EQ(port_beside(65535), 1024);
  EXPECT_EQ(port_beside(80), 1024);
  EXPECT_EQ(port_beside(1023), 1024);
  EXPECT_EQ(port_beside(1024), 1025);
}

TEST(Launch, TorchrunOnOneHostIsRecognised) {
  EXPECT_TRUE(describe(with(torchrun, {{"LOCAL_WORLD_SIZE", "4"}})).single_host);
  EXPECT_TRUE(describe(with(torchrun, {{"MASTER_ADDR", "localhost"}})).single_host);
}

TEST(Launch, TorchrunWithoutMasterIsRefused) {
  expect_refused(with(torchrun, {{"MASTER_ADDR", ""}}), {"MASTER_ADDR is not", "127.0.0.1"});
  expect_refused(with(torchrun, {{"MASTER_PORT", ""}}), {"MASTER_PORT", "29500"});
  expect_refused(with(torchrun, {{"MASTER_PORT", "99999"}}), {"MASTER_PORT='99999'", "65535"});
}

TEST(Launch, OpenMpiOnOneHostMeetsAtAPortOfTheJob) {
  const auto d = describe(open_mpi);
  EXPECT_EQ(d.source, "Open MPI");
  EXPECT_EQ(d.rank, 2);
  EXPECT_EQ(d.size, 4);
  EXPECT_EQ(d.root_host, "127.0.0.1");
  EXPECT_TRUE(d.single_host);
  EXPECT_GE(d.root_port, 20000);
  EXPECT_LE(d.root_port, 29999);
  EXPECT_EQ(describe(with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "0"}})).root_port, d.root_port);
  EXPECT_NE(describe(with(open_mpi, {{"OMPI_MCA_ess_base_jobid", "123457"}})).root_port, d.root_port);
}

TEST(Launch, OpenMpiOnSeveralHostsNeedsARoot) {
  const Variables spread = with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  expect_refused(spread, {"several hosts", "RONDO_ROOT=10.0.0.1:29555"});
  const auto d = describe(with(spread, {{"RONDO_ROOT", "10.0.0.1:29555"}}));
  EXPECT_EQ(d.source, "Open MPI");
  EXPECT_EQ(d.root_port, 29555);
  EXPECT_FALSE(d.single_host);
}

TEST(Launch, OpenMpiWithoutAJobNameNeedsARoot) {
  expect_refused(with(open_mpi, {{"OMPI_MCA_ess_base_jobid", ""}}), {"PMIX_NAMESPACE", "RONDO_ROOT"});
}

TEST(Launch, SlurmMeetsOnTheFirstHostOfTheStep) {
  const auto d = describe(slurm);
  EXPECT_EQ(d.source, "Slurm");
  EXPECT_EQ(d.rank, 3);
  EXPECT_EQ(d.size, 4);
  EXPECT_EQ(d.root_host, "node03");
  EXPECT_FALSE(d.single_host);
  EXPECT_NE(describe(with(slurm, {{"SLURM_STEP_ID", "1"}})).root_port, d.root_port);
  EXPECT_TRUE(describe(with(slurm, {{"SLURM_STEP_NODELIST", "node07"}})).single_host);
}

TEST(Launch, SlurmsStepSizeBeatsTheJobs) {
  EXPECT_EQ(describe(with(slurm, {{"SLURM_NTASKS", "64"}, {"SLURM_STEP_NUM_TASKS", "8"}})).size, 8);
}

TEST(Launch, ABatchScriptIsNoStep) {
  expect_refused({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "77"}}, {"no launcher"});
}

TEST(Launch, MalformedAndPartialValuesNameTheVariable) {
  expect_refused({{"RANK", "1"}}, {"RANK is set but WORLD_SIZE is not"});
  expect_refused({{"RONDO_SIZE", "4"}}, {"RONDO_SIZE is set but RONDO_RANK is not"});
  expect_refused({{"RONDO_RANK", "x"}, {"RONDO_SIZE", "4"}}, {"RONDO_RANK='x'", "whole number"});
  expect_refused({{"RONDO_RANK", "-1"}, {"RONDO_SIZE", "4"}}, {"RONDO_RANK='-1'"});
  expect_refused({{"RONDO_RANK", "4"}, {"RONDO_SIZE", "4"}}, {"RONDO_RANK=4", "less than RONDO_SIZE=4", "0 to 3"});
  expect_refused({{"RONDO_RANK", "0"}, {"RONDO_SIZE", "0"}}, {"RONDO_SIZE='0'"});
  expect_refused(with(slurm, {{"SLURM_NTASKS", "99999999999999999999"}}), {"SLURM_NTASKS="});
  expect_refused(with(slurm, {{"SLURM_STEP_NODELIST", "node[3"}}), {"SLURM_STEP_NODELIST", "not closed"});
  expect_refused({{"RONDO_RANK", "0"}, {"RONDO_SIZE", "4"}}, {"RONDO_UNIQUE_ID", "RONDO_ROOT"});
  expect_refused({{"RONDO_RANK", "0"}, {"RONDO_SIZE", "4"}, {"RONDO_ROOT", "a:1"}, {"RONDO_UNIQUE_ID", "ab"}},
                 {"both set"});
}

TEST(Launch, DisagreementNamesBothSources) {
  const Variables rondo = {{"RONDO_RANK", "1"}, {"RONDO_SIZE", "4"}, {"RONDO_UNIQUE_ID", "abc"}};
  expect_refused(with(rondo, {{"RANK", "2"}, {"WORLD_SIZE", "4"}}), {"rondo run (RONDO_RANK=1)", "torchrun (RANK=2)"});
  expect_refused(with(rondo, {{"RANK", "1"}, {"WORLD_SIZE", "8"}}), {"RONDO_SIZE=4", "WORLD_SIZE=8"});
  expect_refused(with(rondo, open_mpi), {"RONDO_RANK=1", "OMPI_COMM_WORLD_RANK=2"});
  expect_refused(with(rondo, slurm), {"RONDO_RANK=1", "SLURM_PROCID=3"});
  EXPECT_EQ(describe(with(rondo, {{"RANK", "1"}, {"WORLD_SIZE", "4"}})).rank, 1);
}

TEST(Launch, LaunchersOfDaemonsHaveNoSay) {
  // srun started torchrun's agents, one a host, or mpirun's daemons: what it says of them is no rank of ours.
  EXPECT_EQ(describe(with(torchrun, slurm)).rank, 1);
  EXPECT_EQ(describe(with(open_mpi, slurm)).rank, 2);
}

TEST(Nodelist, ExpandsRangesWidthsAndProducts) {
  using Hosts = std::vector<std::string>;
  EXPECT_EQ(expand_nodelist("V", "node[03-05,7],gpu1"), (Hosts{"node03", "node04", "node05", "node7", "gpu1"}));
  EXPECT_EQ(expand_nodelist("V", "a"), (Hosts{"a"}));
  EXPECT_EQ(expand_nodelist("V", "n[9-11]"), (Hosts{"n9", "n10", "n11"}));
  EXPECT_EQ(expand_nodelist("V", "n[098-101]x"), (Hosts{"n098x", "n099x", "n100x", "n101x"}));
  EXPECT_EQ(expand_nodelist("V", "r[1-2]n[1-2]"), (Hosts{"r1n1", "r1n2", "r2n1", "r2n2"}));
}

TEST(Nodelist, RefusesMalformedAndBoundlessText) {
  for (const char* text :
       {"", ",", "a,", "n[", "n]", "n[]", "n[1-]", "n[-1]", "n[2-1]", "n[a]", "n[1]]", "n[[1]]", "n[1,]",
        "n[1-99999999]", "n[1-300]x[1-300]", "n[1-9223372036854775807]", "n[1-40000],n[1-40000]"}) {
    expect_refusal([&] { expand_nodelist("SLURM_STEP_NODELIST", text); }, {"SLURM_STEP_NODELIST="});
  }
}

// A directory of its own that goes with the test.
class Directory {
 public:
  Directory() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() { EXPECT_EQ(std::system(("rm -rf " + path_).c_str()), 0); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/rondo_launch_test.XXXXXX";
};

std::string write_file(const std::string& path, std::size_t bytes, mode_t mode) {
  std::ofstream(path) << std::string(bytes, 'k');
  EXPECT_EQ(chmod(path.c_str(), mode), 0);
  return path;
}

TEST(SecretFile, IsTakenWhenPrivateAndLongEnough) {
  const Directory d;
  EXPECT_EQ(read_secret_file(write_file(d / "a", 32, 0600)).size(), 32U);
  EXPECT_EQ(read_secret_file(write_file(d / "b", 100, 0400)).size(), 100U);
}

TEST(SecretFile, IsRefusedWithTheCommandThatPutsItRight) {
  const Directory d;
  expect_refusal([&] { read_secret_file(d / "none"); }, {"RONDO_SECRET_FILE=", "No such file", "urandom"});
  for (const mode_t mode : {0644U, 0640U, 0604U, 0620U, 0602U, 0601U}) {
    expect_refusal([&] { read_secret_file(write_file(d / "open", 32, mode)); }, {"0600", "chmod 600"});
  }
  expect_refusal([&] { read_secret_file(write_file(d / "short", 31, 0600)); }, {"31 bytes", "32"});
  expect_refusal([&] { read_secret_file(d.path()); }, {"no regular file"});
  ASSERT_EQ(mkfifo((d / "fifo").c_str(), 0600), 0);
  expect_refusal([&] { read_secret_file(d / "fifo"); }, {"no regular file"});
}

TEST(SecretFile, OfSomebodyElseIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const Directory d;
  const std::string path = write_file(d / "theirs", 32, 0600);
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  expect_refusal([&] { read_secret_file(path); }, {"user 12345"});
}

TEST(UserSecret, IsMadeOnceAndPrivate) {
  const Directory d;
  const auto first = user_secret(d / "keys");
  EXPECT_EQ(first.size(), 32U);
  EXPECT_EQ(user_secret(d / "keys"), first);
  struct stat status {};
  ASSERT_EQ(stat((d / "keys").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
  ASSERT_EQ(stat((d / "keys/key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  const Directory other;
  EXPECT_NE(user_secret(other / "keys"), first);
}

TEST(UserSecret, IsTheSameForAllWhoAskAtOnce) {
  const Directory d;
  std::vector<std::vector<std::uint8_t>> secrets(8);
  std::vector<std::thread> threads;
  for (auto& secret : secrets) threads.emplace_back([&] { secret = user_secret(d / "keys"); });
  for (auto& thread : threads) thread.join();
  for (const auto& secret : secrets) EXPECT_EQ(secret, secrets.front());
  // No half-made file stays.
  EXPECT_EQ(std::system(("test $(ls " + (d / "keys") + " | wc -l) = 1").c_str()), 0);
}

TEST(UserSecret, TrustsNoDirectoryOfOthers) {
  const Directory d;
  ASSERT_EQ(mkdir((d / "open").c_str(), 0755), 0);
  expect_refusal([&] { user_secret(d / "open"); }, {"0700", "RONDO_SECRET_FILE"});
  ASSERT_EQ(mkdir((d / "real").c_str(), 0700), 0);
  ASSERT_EQ(symlink((d / "real").c_str(), (d / "link").c_str()), 0);
  expect_refusal([&] { user_secret(d / "link"); }, {"must be a directory"});
}

TEST(DeriveKey, DependsOnSecretAndJobAlone) {
  const std::vector<std::uint8_t> a(32, 1);
  const std::vector<std::uint8_t> b(33, 1);
  EXPECT_EQ(derive_key(a, "job"), derive_key(a, "job"));
  EXPECT_NE(derive_key(a, "job"), derive_key(a, "job2"));
  EXPECT_NE(derive_key(a, "job"), derive_key(b, "job"));
}

std::uint16_t free_port() {
  const std::vector<base::SocketAddress> loopback = {base::SocketAddress::parse("127.0.0.1")};
  return base::Listener(loopback, {}).port();
}

TEST(ReadLaunchEnvironment, RanksOfOneHostComputeOneId) {
  const Directory d;
  const std::string root = "127.0.0.1:" + std::to_string(free_port());
  const Variables common = {{"RONDO_SIZE", "2"}, {"RONDO_ROOT", root}, {"XDG_RUNTIME_DIR", d.path()}};
  const auto zero = read_launch_environment(lookup_in(with(common, {{"RONDO_RANK", "0"}})));
  const auto one = read_launch_environment(lookup_in(with(common, {{"RONDO_RANK", "1"}})));
  EXPECT_EQ(one.rank, 1);
  EXPECT_EQ(one.size, 2);
  EXPECT_EQ(key_of(zero.id), key_of(one.id));
  EXPECT_EQ(addresses_of(one.id).front().to_string(), root);
  EXPECT_EQ(addresses_of(zero.id).front().to_string(), root);
}

TEST(ReadLaunchEnvironment, ATakenPortIsNamedWithTheWayOut) {
  const Directory d;
  const std::vector<base::SocketAddress> loopback = {base::SocketAddress::parse("127.0.0.1")};
  const base::Listener taken(loopback, {});
  const std::string port = std::to_string(taken.port());
  try {
    read_launch_environment(lookup_in({{"RONDO_SIZE", "2"},
                                       {"RONDO_RANK", "0"},
                                       {"RONDO_ROOT", "127.0.0.1:" + port},
                                       {"XDG_RUNTIME_DIR", d.path()}}));
    FAIL() << "the port is taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("port " + port), std::string::npos) << e.what();
    EXPECT_NE(e.hint().find("RONDO_ROOT="), std::string::npos) << e.what();
  }
}

TEST(ReadLaunchEnvironment, SeveralHostsWithoutAKeyAreRefused) {
  expect_refusal([] { read_launch_environment(lookup_in(torchrun)); },
                 {"share no key", "RONDO_SECRET_FILE", "rondo run --hosts"});
  const Directory d;
  const std::string path = write_file(d / "secret", 32, 0600);
  const auto environment = read_launch_environment(lookup_in(with(torchrun, {{"RONDO_SECRET_FILE", path}})));
  EXPECT_EQ(environment.source, "torchrun");
  EXPECT_EQ(addresses_of(environment.id).front().to_string(), "10.0.0.7:29501");
}

TEST(ReadLaunchEnvironment, AHostThatIsUnknownIsNamed) {
  const Directory d;
  const std::string path = write_file(d / "secret", 32, 0600);
  expect_refusal(
      [&] {
        read_launch_environment(
            lookup_in(with(torchrun, {{"RONDO_SECRET_FILE", path}, {"MASTER_ADDR", "no-such-host.invalid"}})));
      },
      {"no-such-host.invalid", "RONDO_ROOT"});
}

TEST(ReadLaunchEnvironment, AMalformedIdIsNotRepeated) {
  const std::string secret(255, 'a');
  try {
    read_launch_environment(lookup_in({{"RONDO_RANK", "0"}, {"RONDO_SIZE", "1"}, {"RONDO_UNIQUE_ID", secret}}));
    FAIL() << "the id is too short";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::configuration);
    EXPECT_NE(std::string(e.what()).find("RONDO_UNIQUE_ID"), std::string::npos);
    EXPECT_EQ(std::string(e.what()).find("aaaa"), std::string::npos);
  }
}

}  // namespace
}  // namespace rondo::bootstrap
