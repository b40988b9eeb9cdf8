#include "tools/run/agent.hpp"

#include <rondo/error.hpp>

#include "base/bytes.hpp"
#include "tools/run/environment_list.hpp"
#include "tools/run/process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace rondo::tools {

namespace {

constexpr std::string_view magic = "RONDO-RUN-1\n";
constexpr std::size_t largest_job = std::size_t{1} << 24;
constexpr base::Nanoseconds term_to_kill = 500'000'000;

void read_exactly(std::span<char> into) {
  while (!into.empty()) {
    const ssize_t n = read(STDIN_FILENO, into.data(), into.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw base::system_error("read of the job from standard input", errno);
    if (n == 0) throw Error(ErrorCode::transport, "the job on standard input ends too early");
    into = into.subspan(static_cast<std::size_t>(n));
  }
}

std::vector<std::string> read_list(base::ByteReader& reader) {
  const std::size_t count = reader.get_count(sizeof(std::uint32_t));
  std::vector<std::string> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(reader.get_string());
  return list;
}

AgentJob read_job() {
  std::array<char, magic.size() + sizeof(std::uint32_t)> head{};
  read_exactly(head);
  if (std::string_view(head.data(), magic.size()) != magic) {
    throw Error(ErrorCode::transport, "standard input does not begin with a job of this version of rondo run",
                "install the same version of rondo on all hosts, and keep the remote shell from adding input");
  }
  base::ByteReader length_reader(std::as_bytes(std::span(head).subspan(magic.size())));
  const std::size_t length = length_reader.get<std::uint32_t>();
  if (length > largest_job) {
    throw Error(ErrorCode::transport,
                fmt::format("a job of {} bytes is too long; {} are allowed", length, largest_job));
  }
  std::vector<char> body(length);
  read_exactly(body);
  base::ByteReader reader(std::as_bytes(std::span(body)));
  AgentJob job;
  job.host = reader.get_string();
  job.directory = reader.get_string();
  job.environment = read_list(reader);
  job.program = read_list(reader);
  reader.expect_end();
  if (job.program.empty()) throw Error(ErrorCode::transport, "the job names no program");
  return job;
}

// Steps the program until it ends; returns its status.
int watch(pid_t program, const base::FileDescriptor& signals) {
  bool launcher_gone = false;
  base::Nanoseconds kill_at = 0;
  for (;;) {
    std::array<pollfd, 2> wait{{{signals.get(), POLLIN, 0}, {launcher_gone ? -1 : STDIN_FILENO, POLLIN, 0}}};
    const int limit = kill_at == 0 ? -1 : base::to_milliseconds(kill_at - base::System::real().now());
    poll(wait.data(), wait.size(), limit);
    if (kill_at != 0 && base::System::real().now() >= kill_at) {
      kill(program, SIGKILL);
      kill_at = 0;
    }
    signalfd_siginfo info{};
    while (read(signals.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo != SIGCHLD) kill(program, static_cast<int>(info.ssi_signo));
    }
    if (!launcher_gone && wait[1].revents != 0) {
      std::array<char, 64> orders{};
      const ssize_t n = read(STDIN_FILENO, orders.data(), orders.size());
      for (ssize_t i = 0; i < n; ++i) kill(program, orders[static_cast<std::size_t>(i)]);
      if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        launcher_gone = true;
        kill(program, SIGTERM);
        kill_at = base::System::real().now() + term_to_kill;
      }
    }
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
      if (ended == program) return status;
    }
  }
}

}  // namespace

std::string encode_job(const AgentJob& job) {
  base::ByteWriter body;
  body.put_string(job.host).put_string(job.directory);
  body.put(static_cast<std::uint32_t>(job.environment.size()));
  for (const std::string& entry : job.environment) body.put_string(entry);
  body.put(static_cast<std::uint32_t>(job.program.size()));
  for (const std::string& word : job.program) body.put_string(word);
  if (body.size() > largest_job) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the program's arguments and RONDO_ variables have {} bytes; {} are allowed with --hosts",
                            body.size(), largest_job));
  }
  base::ByteWriter frame;
  frame.put_raw(base::as_bytes(magic)).put_bytes(body.bytes());
  return {reinterpret_cast<const char*>(frame.bytes().data()), frame.bytes().size()};
}

int run_agent() {
  AgentJob job;
  try {
    const SignalState before = take_over_signals();
    job = read_job();
    const base::FileDescriptor signals = open_signal_descriptor();
    adopt_orphans();
    ProcessSpec spec;
    spec.arguments = job.program;
    spec.environment = merge_environment(process_environment_list(), job.environment);
    spec.directory = job.directory;
    const Process program = start_process(spec, before);
    const int status = watch(program.pid, signals);
    kill_children();
    return exit_code_of(status);
  } catch (const StartFailure& failure) {
    fmt::print(stderr, "rondo run: cannot {} on host {}: {}\n", failure.what, job.host,
               std::generic_category().message(failure.error));
    return failure.exit_code();
  } catch (const Error& e) {
    fmt::print(stderr, "rondo run-agent: {}\n", e.what());
    return 126;
  }
}

}  // namespace rondo::tools
