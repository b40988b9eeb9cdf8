// Starting processes and telling how they ended: what `rondo run` and its agent share.
//
// Called from the main thread only: a process started here dies with the thread that started it. Other threads may
// run. Errors are Error(system).
#pragma once

#include "base/socket.hpp"

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace rondo::tools {

// What a started program must find as it was before the launcher changed it for itself.
struct SignalState {
  sigset_t mask{};
  struct sigaction pipe {};
};
// Blocks the signals that a signal descriptor reads instead (SIGCHLD and those that are forwarded: SIGINT, SIGTERM,
// SIGHUP, SIGUSR1, SIGUSR2) and ignores SIGPIPE. Before any thread starts, so that all threads block them.
SignalState take_over_signals();
base::FileDescriptor open_signal_descriptor();

enum class Stream : std::uint8_t { inherit, null, pipe };

struct ProcessSpec {
  std::vector<std::string> arguments;    // the first is looked up in PATH
  std::vector<std::string> environment;  // "NAME=value"
  std::string directory;                 // "": stay
  Stream input = Stream::null;
  Stream output = Stream::inherit;  // of both standard output and standard error, a pipe each
  // Away from the terminal, whose keys then signal the launcher alone.
  bool own_session = false;
};

struct Process {
  pid_t pid = -1;
  // Our ends of the pipes, non-blocking.
  base::FileDescriptor input;
  base::FileDescriptor output;
  base::FileDescriptor error;
};

// Why a program did not start: what failed ("execute", "enter directory ..") and errno.
struct StartFailure {
  std::string what;
  int error = 0;
  // 127 if the program was not found, else 126: as shells do.
  int exit_code() const;
};

// Returns once the program runs. It gets SIGKILL when this thread ends. Throws StartFailure.
Process start_process(const ProcessSpec& spec, const SignalState& signals);

// A shell's exit code for a status of waitpid: the program's own, or 128 + signal.
int exit_code_of(int status);
// "exited with code 3", "was killed by SIGKILL".
std::string describe_status(int status);
// "SIGKILL", "signal 77".
std::string signal_name(int number);

// From now on, processes whose parents have died become this one's children.
void adopt_orphans();
// Kills and reaps all children of this process and their orphans, for at most a second. For the end, when the ranks
// themselves have been reaped.
void kill_children();

// As many descriptors as the system allows; the soft limit is restored in programs started later.
void raise_descriptor_limit();

}  // namespace rondo::tools
