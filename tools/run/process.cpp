#include "tools/run/process.hpp"

#include <rondo/error.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

namespace rondo::tools {

namespace {

constexpr std::array<int, 6> taken_signals = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// The soft limit that programs get back; set once by raise_descriptor_limit.
std::optional<rlimit> original_descriptor_limit;

sigset_t taken_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : taken_signals) sigaddset(&set, number);
  return set;
}

struct Pipe {
  base::FileDescriptor read;
  base::FileDescriptor write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw base::system_error("pipe2", errno, "raise the limit on open files, for example: ulimit -n 65536");
  }
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

base::FileDescriptor open_null() {
  const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0) throw base::system_error("open of /dev/null", errno);
  return base::FileDescriptor(fd);
}

void make_non_blocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) throw base::system_error("fcntl(O_NONBLOCK)", errno);
}

std::vector<char*> as_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// What the child reports over the error pipe when it cannot become the program.
struct ChildReport {
  int step;  // 0: execute, 1: directory, 2: streams
  int error;
};

[[noreturn]] void report_and_exit(int pipe, int step) {
  const ChildReport report{step, errno};
  [[maybe_unused]] const ssize_t written = write(pipe, &report, sizeof report);
  _exit(127);
}

// All that the child needs, made before fork(): between fork() and exec() only async-signal-safe calls are allowed.
struct ChildSetup {
  const SignalState* signals;
  const char* directory;
  int input;
  int output;
  int error;
  int report;
  bool own_session;
  pid_t parent;
  char** arguments;
  char** environment;
};

// dup2() of a descriptor onto itself leaves close-on-exec set, so that case clears it by hand.
bool become(int from, int to) {
  if (from < 0) return true;
  if (from == to) return fcntl(to, F_SETFD, 0) == 0;
  return dup2(from, to) >= 0;
}

[[noreturn]] void run_child(const ChildSetup& setup) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  if (getppid() != setup.parent) _exit(127);
  if (setup.own_session) setsid();
  sigaction(SIGPIPE, &setup.signals->pipe, nullptr);
  if (original_descriptor_limit) setrlimit(RLIMIT_NOFILE, &*original_descriptor_limit);
  if (*setup.directory != '\0' && chdir(setup.directory) != 0) report_and_exit(setup.report, 1);
  if (!become(setup.input, STDIN_FILENO) || !become(setup.output, STDOUT_FILENO) ||
      !become(setup.error, STDERR_FILENO)) {
    report_and_exit(setup.report, 2);
  }
  sigprocmask(SIG_SETMASK, &setup.signals->mask, nullptr);
  execvpe(setup.arguments[0], setup.arguments, setup.environment);
  report_and_exit(setup.report, 0);
}

std::vector<pid_t> children_of_this_process() {
  std::vector<pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), closedir);
  if (!tasks) return children;
  while (const dirent* task = readdir(tasks.get())) {
    if (task->d_name[0] == '.') continue;
    std::ifstream list(fmt::format("/proc/self/task/{}/children", task->d_name));
    for (pid_t pid = 0; list >> pid;) children.push_back(pid);
  }
  return children;
}

}  // namespace

SignalState take_over_signals() {
  SignalState before;
  const sigset_t set = taken_set();
  if (pthread_sigmask(SIG_BLOCK, &set, &before.mask) != 0) throw base::system_error("pthread_sigmask", errno);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  if (sigaction(SIGPIPE, &ignore, &before.pipe) != 0) throw base::system_error("sigaction", errno);
  return before;
}

base::FileDescriptor open_signal_descriptor() {
  const sigset_t set = taken_set();
  const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) throw base::system_error("signalfd", errno);
  return base::FileDescriptor(fd);
}

int StartFailure::exit_code() const { return error == ENOENT ? 127 : 126; }

Process start_process(const ProcessSpec& spec, const SignalState& signals) {
  std::vector<char*> arguments = as_pointers(spec.arguments);
  std::vector<char*> environment = as_pointers(spec.environment);
  Pipe report = make_pipe();
  Pipe input;
  Pipe output;
  Pipe error;
  base::FileDescriptor null;
  ChildSetup setup{&signals,         spec.directory.c_str(), -1, -1, -1, report.write.get(), spec.own_session, getpid(),
                   arguments.data(), environment.data()};
  if (spec.input == Stream::null || spec.output == Stream::null) null = open_null();
  if (spec.input == Stream::null) setup.input = null.get();
  if (spec.output == Stream::null) setup.output = setup.error = null.get();
  if (spec.input == Stream::pipe) {
    input = make_pipe();
    make_non_blocking(input.write.get());
    setup.input = input.read.get();
  }
  if (spec.output == Stream::pipe) {
    output = make_pipe();
    error = make_pipe();
    make_non_blocking(output.read.get());
    make_non_blocking(error.read.get());
    setup.output = output.write.get();
    setup.error = error.write.get();
  }

  Process process;
  process.pid = fork();
  if (process.pid < 0) throw StartFailure{"start a process (fork)", errno};
  if (process.pid == 0) run_child(setup);

  report.write.reset();
  ChildReport failure{};
  ssize_t got = 0;
  do {
    got = read(report.read.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof failure)) {
    waitpid(process.pid, nullptr, 0);
    if (failure.step == 1) throw StartFailure{fmt::format("enter directory '{}'", spec.directory), failure.error};
    if (failure.step == 2) throw StartFailure{"set up the standard streams", failure.error};
    throw StartFailure{fmt::format("execute '{}'", spec.arguments.front()), failure.error};
  }
  process.input = std::move(input.write);
  process.output = std::move(output.read);
  process.error = std::move(error.read);
  return process;
}

int exit_code_of(int status) {
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status);
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("was killed by {}{}", signal_name(WTERMSIG(status)), WCOREDUMP(status) ? " (core dumped)" : "");
  }
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void kill_children() {
  const base::FileDescriptor signals = open_signal_descriptor();
  const base::Nanoseconds deadline = base::System::real().now() + 1'000'000'000;
  for (;;) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    // Killing a process hands its children to this one, so this repeats until there are none.
    const std::vector<pid_t> children = children_of_this_process();
    const base::Nanoseconds left = deadline - base::System::real().now();
    if (children.empty() || left <= 0) return;
    for (const pid_t child : children) kill(child, SIGKILL);
    pollfd wait{signals.get(), POLLIN, 0};
    poll(&wait, 1, base::to_milliseconds(left));
    signalfd_siginfo drained{};
    while (read(signals.get(), &drained, sizeof drained) > 0) {
    }
  }
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  const rlimit before = limit;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) original_descriptor_limit = before;
}

}  // namespace rondo::tools
