#include "tools/run/launcher.hpp"

#include <rondo/error.hpp>

#include "base/format.hpp"
#include "tools/run/agent.hpp"
#include "tools/run/environment_list.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <system_error>
#include <utility>

namespace rondo::tools {

namespace {

constexpr base::Nanoseconds grace = 1'500'000'000;
constexpr base::Nanoseconds term_to_kill = 500'000'000;
// How long a dying rank may take to be reaped, before those that were reaped are judged without it.
constexpr base::Nanoseconds time_to_die = 300'000'000;
constexpr int timeout_code = 124;  // as timeout(1)
// After so many SIGINT or SIGTERM the ranks are killed: the user means it.
constexpr int patience = 3;

// An outer launcher's word on rank and size: about this launcher, not about its ranks.
constexpr std::array<std::string_view, 14> outer_variables = {"RONDO_RANK",
                                                              "RONDO_SIZE",
                                                              "RONDO_LOCAL_RANK",
                                                              "RONDO_LOCAL_SIZE",
                                                              "RONDO_ROOT",
                                                              "RONDO_UNIQUE_ID",
                                                              "RANK",
                                                              "WORLD_SIZE",
                                                              "LOCAL_RANK",
                                                              "LOCAL_WORLD_SIZE",
                                                              "OMPI_COMM_WORLD_RANK",
                                                              "OMPI_COMM_WORLD_SIZE",
                                                              "SLURM_PROCID",
                                                              "TORCHELASTIC_RUN_ID"};

std::string own_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) throw base::system_error("readlink of /proc/self/exe", errno);
  return {path.data(), static_cast<std::size_t>(n)};
}

std::string working_directory() {
  std::array<char, PATH_MAX> path{};
  if (getcwd(path.data(), path.size()) == nullptr) throw base::system_error("getcwd", errno);
  return path.data();
}

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// The kernel takes a dying process's memory before it closes its descriptors. False for a process that is gone.
bool has_lost_its_memory(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  std::uint64_t pages = 0;
  return static_cast<bool>(file >> pages) && pages == 0;
}

// "0-3, 7"
std::string format_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += last == i ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

Launcher::Launcher(RunOptions options, std::string unique_id, const SignalState& signals)
    : options_(std::move(options)),
      unique_id_(std::move(unique_id)),
      signals_(signals),
      signal_descriptor_(open_signal_descriptor()) {}

int Launcher::run() {
  adopt_orphans();
  raise_descriptor_limit();
  if (options_.timeout) timeout_at_ = base::System::real().now() + *options_.timeout;
  if (start_all()) {
    while (alive_ > 0) step();
  }
  // Programs that the ranks left behind end here, so that nothing outlives the launcher.
  kill_children();
  for (Rank& rank : ranks_) drain(rank);
  flush_rest();
  return code_.value_or(0);
}

bool Launcher::start_all() {
  ranks_.reserve(static_cast<std::size_t>(options_.size));
  for (const Place& place : place_ranks(options_.size, options_.hosts)) {
    try {
      const ProcessSpec spec = describe(place);
      Rank rank;
      rank.place = place;
      rank.process = start_process(spec, signals_);
      rank.alive = true;
      const std::string prefix =
          options_.prefix && options_.size > 1 ? fmt::format("[{}] ", place.rank) : std::string();
      if (spec.output == Stream::pipe) {
        rank.output.emplace(prefix, output_);
        rank.error.emplace(prefix, error_);
      }
      if (spec.input == Stream::pipe) {
        AgentJob job;
        job.host = place.host;
        job.directory = working_directory();
        for (const std::string& entry : without_variables(process_environment_list(), outer_variables)) {
          if (entry.rfind("RONDO_", 0) == 0) job.environment.push_back(entry);
        }
        job.environment = merge_environment(std::move(job.environment), rank_variables(place));
        job.program = options_.program;
        rank.unsent = encode_job(job);
      }
      by_pid_[rank.process.pid] = ranks_.size();
      ++alive_;
      ranks_.push_back(std::move(rank));
      if (!ranks_.back().unsent.empty()) send_input(ranks_.back());
    } catch (const StartFailure& failure) {
      const bool not_found = failure.error == ENOENT && failure.what.rfind("execute", 0) == 0;
      say(fmt::format("cannot {} for rank {}: {}{}", failure.what, place.rank,
                      std::generic_category().message(failure.error),
                      not_found ? " (a name without a slash is looked up in PATH; ./name is this directory's)" : ""));
      code_ = failure.exit_code();
      return false;
    } catch (const Error& e) {
      say(fmt::format("cannot start rank {}: {}", place.rank, e.what()));
      code_ = 126;
      return false;
    }
  }
  return true;
}

ProcessSpec Launcher::describe(const Place& place) const {
  ProcessSpec spec;
  spec.environment = without_variables(process_environment_list(), outer_variables);
  if (place.host.empty()) {
    spec.arguments = options_.program;
    spec.environment = merge_environment(std::move(spec.environment), rank_variables(place));
    spec.input = place.rank == 0 ? Stream::inherit : Stream::null;
    // A single rank keeps the terminal, if there is one.
    spec.output = options_.size > 1 ? Stream::pipe : Stream::inherit;
    return spec;
  }
  const std::string self = own_program();
  bool has_command = false;
  for (std::string word : options_.agent) {
    has_command = has_command || word.find("{command}") != std::string::npos;
    replace_all(word, "{host}", place.host);
    replace_all(word, "{command}", fmt::format("'{}' run-agent", self));
    spec.arguments.push_back(std::move(word));
  }
  if (!has_command) spec.arguments.insert(spec.arguments.end(), {self, "run-agent"});
  spec.input = Stream::pipe;
  spec.output = Stream::pipe;
  spec.own_session = true;
  return spec;
}

std::vector<std::string> Launcher::rank_variables(const Place& place) const {
  return {fmt::format("RONDO_UNIQUE_ID={}", unique_id_), fmt::format("RONDO_RANK={}", place.rank),
          fmt::format("RONDO_SIZE={}", options_.size), fmt::format("RONDO_LOCAL_RANK={}", place.local_rank),
          fmt::format("RONDO_LOCAL_SIZE={}", place.local_size)};
}

std::string Launcher::name_of(const Rank& rank) const {
  return rank.place.host.empty() ? fmt::format("rank {} (pid {})", rank.place.rank, rank.process.pid)
                                 : fmt::format("rank {} (on {})", rank.place.rank, rank.place.host);
}

void Launcher::say(const std::string& text) {
  error_.append(fmt::format("rondo run: {}\n", text));
  error_.flush();
}

void Launcher::step() {
  // Rebuilt every time: for thousands of ranks this costs less than one of their lines.
  std::vector<pollfd> wait;
  std::vector<Rank*> owner;
  const auto add = [&](int fd, short events, Rank* rank) {
    wait.push_back({fd, events, 0});
    owner.push_back(rank);
  };
  add(signal_descriptor_.get(), POLLIN, nullptr);
  add(output_.pending() ? output_.fd() : -1, POLLOUT, nullptr);
  add(error_.pending() ? error_.fd() : -1, POLLOUT, nullptr);
  const std::size_t fixed = wait.size();
  for (Rank& rank : ranks_) {
    if (rank.process.output && !output_.congested()) add(rank.process.output.get(), POLLIN, &rank);
    if (rank.process.error && !error_.congested()) add(rank.process.error.get(), POLLIN, &rank);
    if (rank.process.input && !rank.unsent.empty()) add(rank.process.input.get(), POLLOUT, &rank);
  }

  base::Nanoseconds next = phase_end_;
  for (const base::Nanoseconds other : {timeout_at_, judge_at_}) {
    if (other != 0 && (next == 0 || other < next)) next = other;
  }
  const int limit =
      next == 0 ? -1 : base::to_milliseconds(std::max<base::Nanoseconds>(0, next - base::System::real().now()));
  if (poll(wait.data(), wait.size(), limit) < 0 && errno != EINTR) throw base::system_error("poll", errno);

  for (std::size_t i = fixed; i < wait.size(); ++i) {
    if (wait[i].revents == 0) continue;
    Rank& rank = *owner[i];
    if (wait[i].fd == rank.process.output.get()) {
      if (!read_some(rank.process.output, *rank.output, false)) rank.process.output.reset();
    } else if (wait[i].fd == rank.process.error.get()) {
      if (!read_some(rank.process.error, *rank.error, false)) rank.process.error.reset();
    } else {
      send_input(rank);
    }
  }
  output_.flush();
  error_.flush();
  if ((wait[0].revents & POLLIN) != 0) handle_signals();
  advance(base::System::real().now());
}

void Launcher::handle_signals() {
  signalfd_siginfo info{};
  bool child = false;
  while (read(signal_descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      child = true;
      continue;
    }
    signal_all(number, info.ssi_code == SI_KERNEL);
    if ((number == SIGINT || number == SIGTERM) && ++interrupts_ >= patience && phase_ < Phase::terminating) {
      say(fmt::format("{} for the {}rd time: killing the ranks", signal_name(number), interrupts_));
      fail(128 + number, Phase::terminating, 1);
    }
  }
  if (child) reap();
}

void Launcher::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    // Others are orphans of the ranks.
    const auto found = by_pid_.find(pid);
    if (found == by_pid_.end()) continue;
    ranks_[found->second].reaped = true;
    ended_.emplace_back(found->second, status);
    by_pid_.erase(found);
  }
  const bool failed =
      std::any_of(ended_.begin(), ended_.end(), [](const auto& e) { return exit_code_of(e.second) != 0; });
  if (failed && !code_ && judge_at_ == 0) {
    for (Rank& rank : ranks_) rank.awaited = !rank.reaped && has_lost_its_memory(rank.process.pid);
    judge_at_ = base::System::real().now() + time_to_die;
  }
  judge();
}

// Which failure came first? A dying process loses its memory, then its sockets, by which its peers notice, and has its
// status ready last: a peer that notices and exits may be reaped before it. So those that were dying when the first
// failure was reaped are waited for, and judged with it.
void Launcher::judge() {
  // One whose first thread alone has ended looks like a dying process; it is not waited for beyond judge_at_.
  const bool wait = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.awaited && !r.reaped; });
  if (judge_at_ != 0 && !code_ && wait && base::System::real().now() < judge_at_) return;
  judge_at_ = 0;
  // Of several that ended together, one that a signal killed is the likelier cause; waitpid() has its own order.
  std::stable_sort(ended_.begin(), ended_.end(),
                   [](const auto& a, const auto& b) { return WIFSIGNALED(a.second) && !WIFSIGNALED(b.second); });
  // All that ended with the first failure are named: any of them may be the cause. Later ones are consequences.
  const bool name_failures = !code_;
  for (const auto& [index, status] : std::exchange(ended_, {})) take_status(ranks_[index], status, name_failures);
}

void Launcher::take_status(Rank& rank, int status, bool name_failures) {
  rank.alive = false;
  --alive_;
  rank.process.input.reset();
  // Its last words come before ours about it.
  drain(rank);
  const int code = exit_code_of(status);
  if (code == 0 || !name_failures) return;
  std::string how = describe_status(status);
  // An agent passes on how its program ended as a shell does.
  if (!rank.place.host.empty() && WIFEXITED(status) && code > 128 && code <= 128 + 64) {
    how = fmt::format("was killed by {}", signal_name(code - 128));
  }
  say(fmt::format("{} {}", name_of(rank), how));
  if (!code_) fail(code, Phase::grace, grace);
}

void Launcher::fail(int code, Phase next, base::Nanoseconds after) {
  if (!code_) code_ = code;
  phase_ = next;
  phase_end_ = base::System::real().now() + after;
}

void Launcher::advance(base::Nanoseconds now) {
  if (judge_at_ != 0) judge();
  if (timeout_at_ != 0 && now >= timeout_at_) {
    timeout_at_ = 0;
    if (phase_ == Phase::running) {
      say(fmt::format("not done after {}: ending the ranks", base::format_duration(*options_.timeout)));
      fail(timeout_code, Phase::grace, 0);
    }
  }
  if (phase_end_ == 0 || now < phase_end_ || alive_ == 0) return;
  std::vector<int> left;
  for (const Rank& rank : ranks_) {
    if (rank.alive && !rank.reaped) left.push_back(rank.place.rank);
  }
  const std::string who = fmt::format("{} {}", left.size() == 1 ? "rank" : "ranks", format_ranks(left));
  switch (phase_) {
    case Phase::running: break;
    case Phase::grace:
      say(fmt::format("ending {} with SIGTERM", who));
      signal_all(SIGTERM, false);
      phase_ = Phase::terminating;
      phase_end_ = now + term_to_kill;
      break;
    case Phase::terminating:
      say(fmt::format("killing {} with SIGKILL", who));
      signal_all(SIGKILL, false);
      phase_ = Phase::killing;
      phase_end_ = options_.hosts.empty() ? 0 : now + term_to_kill;
      break;
    case Phase::killing:
      // Agents that don't answer any more.
      for (const Rank& rank : ranks_) {
        if (rank.alive && !rank.reaped) kill(rank.process.pid, SIGKILL);
      }
      phase_ = Phase::cutting;
      phase_end_ = 0;
      break;
    case Phase::cutting: break;
  }
}

void Launcher::signal_all(int number, bool from_terminal) {
  for (Rank& rank : ranks_) {
    if (!rank.alive || rank.reaped) continue;
    if (!rank.place.host.empty()) {
      rank.unsent += static_cast<char>(number);
      send_input(rank);
    } else if (!from_terminal) {
      // The terminal's keys reach the ranks by themselves, as they are in the launcher's process group.
      kill(rank.process.pid, number);
    }
  }
}

void Launcher::send_input(Rank& rank) {
  while (rank.process.input && !rank.unsent.empty()) {
    const ssize_t n = write(rank.process.input.get(), rank.unsent.data(), rank.unsent.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) {
      // The agent is about to be reaped, and its exit code tells more than a broken pipe.
      rank.process.input.reset();
      rank.unsent.clear();
      return;
    }
    rank.unsent.erase(0, static_cast<std::size_t>(n));
  }
}

bool Launcher::read_some(base::FileDescriptor& fd, LineRelay& relay, bool until_empty) {
  std::array<char, 65536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): read() fills it
  do {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) {
      relay.finish();
      return false;
    }
    relay.feed({buffer.data(), static_cast<std::size_t>(n)});
    // The reader of our stream went: the program learns of it as it would by itself.
    if (relay.sink().broken()) return false;
  } while (until_empty);
  return true;
}

void Launcher::drain(Rank& rank) {
  if (rank.process.output && !read_some(rank.process.output, *rank.output, true)) rank.process.output.reset();
  if (rank.process.error && !read_some(rank.process.error, *rank.error, true)) rank.process.error.reset();
  if (!rank.alive) {
    if (rank.output) rank.output->finish();
    if (rank.error) rank.error->finish();
  }
  output_.flush();
  error_.flush();
}

void Launcher::flush_rest() {
  // As long as the reader takes: what was printed is not thrown away unless the user says so with a signal.
  while (output_.pending() || error_.pending()) {
    std::array<pollfd, 3> wait{{{signal_descriptor_.get(), POLLIN, 0},
                                {output_.pending() ? output_.fd() : -1, POLLOUT, 0},
                                {error_.pending() ? error_.fd() : -1, POLLOUT, 0}}};
    if (poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return;
    output_.flush();
    error_.flush();
    signalfd_siginfo info{};
    while (read(signal_descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP) return;
    }
  }
}

}  // namespace rondo::tools
