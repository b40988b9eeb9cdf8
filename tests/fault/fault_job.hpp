// What fault_rank prints, read back.
#pragma once

#include "multiprocess/job.hpp"

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace rondo::test {

struct Report {
  std::int64_t when = 0;  // CLOCK_MONOTONIC, ns
  std::string code;
  int peer = -2;
  std::string text;
};

inline std::map<int, Report> reports(const Job& job) {
  std::map<int, Report> found;
  for (const auto& [rank, line] : job.lines("REPORT")) {
    Report& report = found[rank];
    std::istringstream words(line);
    words >> report.when >> report.code >> report.peer;
    std::getline(words, report.text);
  }
  return found;
}

// Waits until all ranks have said `word` (READY: they have joined); their process ids by rank, empty after a test
// failure.
inline std::map<int, pid_t> ready(Job& job, int ranks, const std::string& word = "READY") {
  std::map<int, pid_t> pids;
  if (!job.read_until(word + " ", ranks)) return pids;
  // The last line may not be whole yet.
  while (job.lines(word).size() < static_cast<std::size_t>(ranks)) {
    if (!job.read_until("\n", count(job.text(), "\n") + 1)) return {};
  }
  for (const auto& [rank, line] : job.lines(word)) pids[rank] = std::stoi(line);
  return pids;
}

// How a job ends of which one rank was killed.
inline void expect_ended_by_kill(Job& job) { EXPECT_EQ(job.finish(), 128 + SIGKILL) << job.story(); }

constexpr std::int64_t second = 1'000'000'000;

// Every rank but `dead` has reported `code` with `peer` and a text that names it, at most `limit` after `since`.
inline void expect_reports(const Job& job, int ranks, int dead, const std::string& code, int peer, std::int64_t since,
                           std::int64_t limit) {
  const auto found = reports(job);
  for (int r = 0; r < ranks; ++r) {
    if (r == dead) continue;
    const auto it = found.find(r);
    if (it == found.end()) {
      ADD_FAILURE() << "rank " << r << " reported nothing: " << job.story();
      continue;
    }
    EXPECT_EQ(it->second.code, code) << job.story();
    EXPECT_EQ(it->second.peer, peer) << job.story();
    EXPECT_LE(it->second.when - since, limit) << "rank " << r << ": " << job.story();
    if (peer >= 0) {
      EXPECT_NE(it->second.text.find("rank " + std::to_string(peer)), std::string::npos) << job.story();
    }
  }
}

}  // namespace rondo::test
