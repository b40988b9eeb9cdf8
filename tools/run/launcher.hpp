// The launcher: starts the ranks, passes on what they print and the signals it gets, and ends them together.
//
// One thread, one poll loop, whatever the number of ranks. A rank that fails gives the others 1.5 s to notice, report
// and end by themselves; then they get SIGTERM, and 0.5 s later SIGKILL. Ranks die with the launcher, whatever ends it.
#pragma once

#include "base/socket.hpp"
#include "base/system.hpp"
#include "tools/run/command_line.hpp"
#include "tools/run/line_relay.hpp"
#include "tools/run/process.hpp"

#include <poll.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rondo::tools {

class Launcher {
 public:
  // `unique_id`: the text for RONDO_UNIQUE_ID. `signals`: what take_over_signals() returned.
  Launcher(RunOptions options, std::string unique_id, const SignalState& signals);
  // Runs all ranks to their end; returns the exit code of the first that failed, or 0.
  int run();

 private:
  struct Rank {
    Place place;
    Process process;
    std::optional<LineRelay> output;
    std::optional<LineRelay> error;
    std::string unsent;  // for an agent's standard input
    bool alive = false;
    bool reaped = false;   // its process id may be another's by now; still alive until its end is judged
    bool awaited = false;  // was dying when the first failure was reaped
  };
  // What the ranks are being asked to do, in order; each lasts until its deadline.
  enum class Phase : std::uint8_t { running, grace, terminating, killing, cutting };

  bool start_all();
  ProcessSpec describe(const Place& place) const;
  std::vector<std::string> rank_variables(const Place& place) const;
  std::string name_of(const Rank& rank) const;
  void say(const std::string& text);

  void step();
  void handle_signals();
  void reap();
  void judge();
  void take_status(Rank& rank, int status, bool name_failures);
  void fail(int code, Phase next, base::Nanoseconds after);
  void advance(base::Nanoseconds now);
  void signal_all(int number, bool from_terminal);
  void send_input(Rank& rank);
  // Returns false at the stream's end.
  bool read_some(base::FileDescriptor& fd, LineRelay& relay, bool until_empty);
  void drain(Rank& rank);
  void flush_rest();

  RunOptions options_;
  std::string unique_id_;
  SignalState signals_;
  base::FileDescriptor signal_descriptor_;
  OutputSink output_{STDOUT_FILENO};
  OutputSink error_{STDERR_FILENO};
  std::vector<Rank> ranks_;
  std::map<pid_t, std::size_t> by_pid_;
  std::size_t alive_ = 0;
  std::vector<std::pair<std::size_t, int>> ended_;  // reaped and not judged yet: rank and status
  base::Nanoseconds judge_at_ = 0;                  // 0: nobody is awaited
  std::optional<int> code_;                         // of the first failure
  Phase phase_ = Phase::running;
  base::Nanoseconds phase_end_ = 0;  // 0: none
  base::Nanoseconds timeout_at_ = 0;
  int interrupts_ = 0;
};

}  // namespace rondo::tools
