// `rondo run` as a child process, with its streams in the test's hands. Every wait ends after 30 s with a test failure.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace rondo::tools {

inline constexpr std::chrono::seconds test_limit{30};

class LaunchedProgram {
 public:
  // `arguments` stand behind "rondo run"; `variables` are "NAME=value". Standard input is empty unless given.
  explicit LaunchedProgram(std::vector<std::string> arguments, std::vector<std::string> variables = {},
                           const std::string& input = {}) {
    arguments.insert(arguments.begin(), {RONDO_CLI_PATH, "run"});
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    std::array<int, 2> error{};
    if (pipe2(in.data(), 0) != 0 || pipe2(out.data(), 0) != 0 || pipe2(error.data(), 0) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(error[1], 2);
      for (const int fd : {in[0], in[1], out[0], out[1], error[0], error[1]}) close(fd);
      for (std::string& variable : variables) putenv(variable.data());
      execv(RONDO_CLI_PATH, words.data());
      _exit(99);
    }
    close(in[0]);
    close(out[1]);
    close(error[1]);
    EXPECT_EQ(write(in[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
    close(in[1]);
    out_ = out[0];
    error_ = error[0];
  }
  LaunchedProgram(const LaunchedProgram&) = delete;
  LaunchedProgram& operator=(const LaunchedProgram&) = delete;
  ~LaunchedProgram() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(out_);
    close(error_);
  }

  pid_t pid() const { return pid_; }
  const std::string& output() const { return output_text_; }
  const std::string& error() const { return error_text_; }

  // Reads until `text` has been printed `times` times on standard output.
  bool read_until(const std::string& text, int times) {
    while (count(output_text_, text) < times) {
      if (!read_more()) {
        ADD_FAILURE() << "no " << times << " times '" << text << "' in:\n" << output_text_ << error_text_;
        return false;
      }
    }
    return true;
  }
  void signal(int number) const { ::kill(pid_, number); }
  // Reads everything and returns the exit code, or -signal.
  int finish() {
    while (read_more()) {
    }
    EXPECT_TRUE(ended_) << "still running after 30 s:\n" << output_text_ << error_text_;
    if (!ended_) return -1000;
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  static int count(const std::string& text, const std::string& part) {
    int n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
    return n;
  }

 private:
  bool read_more() {
    std::array<pollfd, 2> wait{{{out_open_ ? out_ : -1, POLLIN, 0}, {error_open_ ? error_ : -1, POLLIN, 0}}};
    if (!out_open_ && !error_open_) {
      ended_ = true;
      return false;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    if (left.count() <= 0 || poll(wait.data(), 2, static_cast<int>(left.count())) <= 0) return false;
    if (wait[0].revents != 0) take(out_, output_text_, out_open_);
    if (wait[1].revents != 0) take(error_, error_text_, error_open_);
    return true;
  }
  static void take(int fd, std::string& text, bool& open) {
    std::array<char, 4096> buffer{};
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
    else open = false;
  }

  pid_t pid_ = -1;
  int out_ = -1;
  int error_ = -1;
  bool out_open_ = true;
  bool error_open_ = true;
  bool ended_ = false;
  std::string output_text_;
  std::string error_text_;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + test_limit;
};

// Whether the process ends within the limit. It need not be a child.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t pid) : fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch() {
    if (fd_ >= 0) close(fd_);
  }
  bool valid() const { return fd_ >= 0; }
  bool ends() const {
    pollfd wait{fd_, POLLIN, 0};
    return poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(test_limit).count())) == 1;
  }

 private:
  int fd_;
};

}  // namespace rondo::tools
