// One rank that calls something else: all ranks say so, naming both sides, within two seconds.
#include "multiprocess/job.hpp"

#include <gmock/gmock.h>

#include <sstream>
#include <tuple>

namespace rondo::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

struct Difference {
  const char* kind;
  const char* usual;  // how errors describe the two calls
  const char* other;
};
void PrintTo(const Difference& difference, std::ostream* out) { *out << difference.kind; }

constexpr Difference differences[] = {
    {"operation", "all_reduce", "all_gather"},
    {"count", "1024 x float32", "1023 x float32"},
    {"algorithm", "(1 x float32", "300000 x float32"},
    {"type", "1024 x float32", "1024 x int32"},
    {"op", "sum", "max"},
    {"root", "root 0", "root 1"},
    {"reduce_root", "root 0", "root 1"},
    {"order", "all_reduce", "all_gather"},
    {"close", "all_reduce #2 (1024 x float32, sum)", "close after collective #1"},
    {"end", "all_reduce #2 (1024 x float32, sum)", "close after collective #1"},
    {"uneven", "to receive 1024 from", "to send 1023 elements to"},
};

class Mismatch : public testing::TestWithParam<std::tuple<Difference, int, const char*>> {};

TEST_P(Mismatch, NamesBothSidesOnAllRanksWithinTwoSeconds) {
  const auto& [difference, ranks, transports] = GetParam();
  for (int odd = 0; odd < ranks; ++odd) {
    SCOPED_TRACE("rank " + std::to_string(odd) + " differs");
    Job job(ranks, {program("mismatched_ranks"), difference.kind, std::to_string(odd)},
            {std::string("RONDO_TRANSPORTS=") + transports});
    EXPECT_EQ(job.finish(), 3) << job.story();
    const auto failed = job.lines("FAILED");
    const bool odd_tells = std::string(difference.kind) != "end";  // else its destructor meets the error
    EXPECT_EQ(failed.size(), static_cast<std::size_t>(odd_tells ? ranks : ranks - 1)) << job.story();
    for (const auto& [rank, line] : failed) {
      std::istringstream words(line);
      int milliseconds = -1;
      std::string code;
      std::string text;
      words >> milliseconds >> code;
      std::getline(words, text);
      EXPECT_LE(milliseconds, 2000) << job.story();
      EXPECT_EQ(code, "mismatch") << job.story();
      EXPECT_THAT(text, HasSubstr(difference.usual)) << job.story();
      EXPECT_THAT(text, HasSubstr(difference.other)) << job.story();
      EXPECT_THAT(text, HasSubstr("rank " + std::to_string(odd) + " called")) << job.story();
      EXPECT_EQ(count(text, " called "), 2) << job.story();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Everyday, Mismatch,
                         testing::Combine(testing::ValuesIn(differences), testing::Values(2, 4),
                                          testing::Values("shm", "tcp")),
                         [](const auto& which) {
                           return std::string(std::get<0>(which.param).kind) + "_" +
                                  std::to_string(std::get<1>(which.param)) + "_ranks_" + std::get<2>(which.param);
                         });

}  // namespace
}  // namespace rondo::test
