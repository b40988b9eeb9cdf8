// A job of real processes under `rondo run`, for tests: what it printed line by line, when, and how it ended.
//
// The job is killed with its launcher when the test gives up; ranks die with their launcher.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rondo::test {

// CLOCK_MONOTONIC, which all processes of a host share.
inline std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

inline std::string program(const std::string& name) { return std::string(RONDO_PROGRAM_DIR) + "/" + name; }

inline int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

class Job {
 public:
  // `command` stands behind the launcher's own options; `variables` are "NAME=value"; `wrapper` stands before the
  // launcher ("ip netns exec host").
  Job(std::vector<std::string> options, const std::vector<std::string>& command,
      std::vector<std::string> variables = {}, std::chrono::seconds limit = std::chrono::seconds(60),
      const std::vector<std::string>& wrapper = {})
      : end_(std::chrono::steady_clock::now() + limit) {
    options.insert(options.begin(), {RONDO_CLI_PATH, "run", "--timeout", std::to_string(limit.count())});
    options.emplace_back("--");
    options.insert(options.end(), command.begin(), command.end());
    options.insert(options.begin(), wrapper.begin(), wrapper.end());
    for (const std::string& word : options) command_ += word + " ";
    std::vector<char*> words;
    for (std::string& option : options) words.push_back(option.data());
    words.push_back(nullptr);
    std::array<int, 2> out{};
    if (pipe2(out.data(), O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], 1);
      dup2(out[1], 2);
      for (std::string& variable : variables) putenv(variable.data());
      execvp(words[0], words.data());
      _exit(99);
    }
    close(out[1]);
    out_ = out[0];
  }
  Job(int ranks, const std::vector<std::string>& command, const std::vector<std::string>& variables = {},
      std::chrono::seconds limit = std::chrono::seconds(60))
      : Job({"-n", std::to_string(ranks)}, command, variables, limit) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(out_);
  }

  // Standard output and standard error together.
  const std::string& text() const { return text_; }
  std::string story() const { return command_ + "\n" + text_; }

  bool read_until(const std::string& part, int times) {
    while (test::count(text_, part) < times) {
      if (!read_more()) {
        ADD_FAILURE() << "no " << times << " times '" << part << "' in: " << story();
        return false;
      }
    }
    return true;
  }
  // The rest of the lines "[rank] label rest", by rank; the last one of each rank.
  std::map<int, std::string> lines(const std::string& label) const {
    std::map<int, std::string> found;
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      const std::string line = text_.substr(at, end - at);
      at = end + 1;
      const std::size_t bracket = line.find("] ");
      if (line.empty() || line[0] != '[' || bracket == std::string::npos) continue;
      if (line.compare(bracket + 2, label.size() + 1, label + " ") != 0) continue;
      found[std::stoi(line.substr(1, bracket - 1))] = line.substr(bracket + 3 + label.size());
    }
    return found;
  }
  // Reads everything; the launcher's exit code, or -signal, or -1000 if it had to be given up.
  int finish() {
    while (read_more()) {
    }
    if (open_) return -1000;
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  bool read_more() {
    if (!open_) return false;
    pollfd wait{out_, POLLIN, 0};
    // A little longer than the launcher's own limit, so that its report is seen.
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now()) +
                      std::chrono::seconds(5);
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) <= 0) return false;
    std::array<char, 65536> buffer{};
    const ssize_t n = read(out_, buffer.data(), buffer.size());
    if (n > 0) text_.append(buffer.data(), static_cast<std::size_t>(n));
    else open_ = false;
    return open_;
  }

  pid_t pid_ = -1;
  int out_ = -1;
  bool open_ = true;
  std::string command_;
  std::string text_;
  std::chrono::steady_clock::time_point end_;
};

// Whether a process has ended (a zombie counts: its parent has it to collect).
inline bool has_ended(pid_t pid) {
  const std::filesystem::path path = "/proc/" + std::to_string(pid) + "/stat";
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return true;
  int number = 0;
  std::array<char, 64> name{};
  char state = '?';
  const int got = std::fscanf(file, "%d %63s %c", &number, name.data(), &state);
  std::fclose(file);
  return got != 3 || state == 'Z' || state == 'X';
}

// Names under /dev/shm, to compare before and after.
inline std::vector<std::string> named_shared_memory() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace rondo::test
