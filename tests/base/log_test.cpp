#include "base/log.hpp"

#include <rondo/error.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace rondo::base {
namespace {

// The log goes to a file of its own while this lives.
class LogFile {
 public:
  explicit LogFile(const char* level, std::optional<std::string> subsystems = {}) {
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    close(fd);
    set_log_options(parse_log_options(level, subsystems, path_));
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile() {
    set_log_options(parse_log_options({}, {}, {}));
    std::remove(path_.c_str());
  }
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path_).rdbuf();
    return out.str();
  }

 private:
  std::string path_ = "/tmp/rondo_log_test.XXXXXX";
};

template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::configuration);
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(Log, LinesCarryHostProcessRankLevelAndSubsystem) {
  const LogFile file("INFO");
  const LogRankScope rank(3);
  log(LogLevel::info, Subsystem::net, "{} bytes", 42);
  const std::string text = file.text();
  EXPECT_NE(text.find(":" + std::to_string(getpid()) + " [3] RONDO INFO NET 42 bytes\n"), std::string::npos) << text;
}

TEST(Log, LevelHidesWhatIsBelowIt) {
  const LogFile file("INFO");
  EXPECT_TRUE(log_enabled(LogLevel::info, Subsystem::plan));
  EXPECT_FALSE(log_enabled(LogLevel::trace, Subsystem::plan));
  log(LogLevel::trace, Subsystem::plan, "hidden");
  log(LogLevel::warn, Subsystem::plan, "shown");
  EXPECT_EQ(file.text().find("hidden"), std::string::npos);
  EXPECT_NE(file.text().find("RONDO WARN PLAN shown"), std::string::npos);
}

TEST(Log, SubsystemsAreChosenAndExcluded) {
  set_log_options(parse_log_options("TRACE", "INIT,NET", {}));
  EXPECT_TRUE(log_enabled(LogLevel::trace, Subsystem::init));
  EXPECT_TRUE(log_enabled(LogLevel::trace, Subsystem::net));
  EXPECT_FALSE(log_enabled(LogLevel::info, Subsystem::shm));
  set_log_options(parse_log_options("trace", "^NET", {}));
  EXPECT_TRUE(log_enabled(LogLevel::trace, Subsystem::shm));
  EXPECT_FALSE(log_enabled(LogLevel::info, Subsystem::net));
  set_log_options(parse_log_options("INFO", "all,^plan", {}));
  EXPECT_TRUE(log_enabled(LogLevel::info, Subsystem::engine));
  EXPECT_FALSE(log_enabled(LogLevel::info, Subsystem::plan));
  set_log_options(parse_log_options({}, {}, {}));
}

TEST(Log, WarningsAppearWhateverTheSubsystems) {
  const LogFile file("INFO", "INIT");
  log(LogLevel::warn, Subsystem::engine, "look");
  EXPECT_NE(file.text().find("WARN ENGINE look"), std::string::npos);
}

TEST(Log, EveryLineOfATextCarriesTheHead) {
  const LogFile file("INFO");
  log(LogLevel::info, Subsystem::init, "one\ntwo");
  const std::string text = file.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("INFO INIT two\n"), std::string::npos);
}

TEST(Log, WarnOnceWritesATextOnce) {
  const LogFile file("WARN");
  for (int i = 0; i < 3; ++i) warn_once(Subsystem::shm, "only once, {}", "really");
  warn_once(Subsystem::shm, "only once, {}", "and another");
  const std::string text = file.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

TEST(Log, LinesOfThreadsStayWhole) {
  const LogFile file("INFO");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      const LogRankScope rank(t);
      for (int i = 0; i < 50; ++i) log(LogLevel::info, Subsystem::engine, "{}", std::string(200, 'x'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::istringstream lines(file.text());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(line.substr(line.find(" RONDO")), " RONDO INFO ENGINE " + std::string(200, 'x'));
  }
  EXPECT_EQ(count, 200);
}

TEST(LogOptions, MalformedValuesSayWhatWorks) {
  EXPECT_NE(refusal([] { parse_log_options("LOUD", {}, {}); }).find("WARN, INFO or TRACE"), std::string::npos);
  EXPECT_NE(refusal([] { parse_log_options({}, "NET,FOO", {}); }).find("'FOO'"), std::string::npos);
  EXPECT_NE(refusal([] { parse_log_options({}, {}, "/tmp/%x"); }).find("%h"), std::string::npos);
}

TEST(FilePattern, NamesHostAndProcess) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  EXPECT_EQ(expand_file_pattern("V", "a.%h.%p.%%"), "a." + std::string(host) + "." + std::to_string(getpid()) + ".%");
  EXPECT_THROW(expand_file_pattern("V", "trailing%"), Error);
}

}  // namespace
}  // namespace rondo::base
