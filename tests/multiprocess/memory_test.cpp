// What a rank holds beyond the user's buffers, and what a job leaves behind.
#include "multiprocess/job.hpp"

#include <sstream>

namespace rondo::test {
namespace {

class Memory : public testing::TestWithParam<const char*> {};

TEST_P(Memory, OfARankOfFourThatUsedEveryCollectiveIsBelow32Mebibytes) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps memory of its own, several times the program's";
#endif
  const std::vector<std::string> before = named_shared_memory();
  Job job(4, {program("every_collective_memory")}, {std::string("RONDO_TRANSPORTS=") + GetParam()});
  ASSERT_EQ(job.finish(), 0) << job.story();
  const auto lines = job.lines("KIB");
  ASSERT_EQ(lines.size(), 4U) << job.story();
  for (const auto& [rank, line] : lines) {
    std::istringstream numbers(line);
    long proportional = 0, resident = 0;
    numbers >> proportional >> resident;
    EXPECT_GT(proportional, 0) << job.story();
    EXPECT_LT(proportional, 32 * 1024) << job.story();
  }
  EXPECT_EQ(named_shared_memory(), before);
}
INSTANTIATE_TEST_SUITE_P(Everyday, Memory, testing::Values("shm,tcp", "tcp"),
                         [](const auto& tested) { return std::string(tested.param) == "tcp" ? "tcp" : "all"; });

}  // namespace
}  // namespace rondo::test
