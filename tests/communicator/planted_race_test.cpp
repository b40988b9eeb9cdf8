// Is ThreadSanitizer awake? A planted race must be reported, and the same program without it must not. Exists in the
// tsan preset only.
#if defined(__SANITIZE_THREAD__)

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace rondo {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string output;
};

Outcome run_program(const std::string& name) {
  Outcome outcome;
  FILE* pipe = popen((std::string(RONDO_PROGRAM_DIR "/") + name + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> part{};
  while (const std::size_t got = fread(part.data(), 1, part.size(), pipe)) outcome.output.append(part.data(), got);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(PlantedRace, AReleaseWeakenedToRelaxedIsReported) {
  const Outcome outcome = run_program("planted_race");
  EXPECT_NE(outcome.output.find("WARNING: ThreadSanitizer: data race"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("pass_messages"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.exit_code, 0);
}

TEST(PlantedRace, TheSameProgramWithoutItIsClean) {
  const Outcome outcome = run_program("no_race");
  EXPECT_EQ(outcome.output.find("ThreadSanitizer"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

}  // namespace
}  // namespace rondo

#endif
