#include "base/fork_guard.hpp"
#include "base/memory_map.hpp"
#include "base/socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace rondo::base {
namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

// Runs `check` in a forked child; its result.
template <class Check>
bool in_child(Check&& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class ForkGuard : public testing::Test {
 protected:
  void SetUp() override { close_in_forked_children(nullptr); }
};

TEST_F(ForkGuard, ChildrenCloseWhatIsOwnedAndNothingElse) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const FileDescriptor owned(pair[0]);
  const SharedMemory memory = SharedMemory::create("test", 4096);
  EXPECT_TRUE(in_child([&] { return !is_open(owned.get()) && !is_open(memory.fd()) && is_open(pair[1]); }));
  EXPECT_TRUE(is_open(owned.get()));
  EXPECT_TRUE(is_open(memory.fd()));
  close(pair[1]);
}

TEST_F(ForkGuard, PeersSeeThatTheParentIsGoneThoughItsChildLives) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  FileDescriptor owned(pair[0]);
  std::array<int, 2> life{};
  ASSERT_EQ(pipe(life.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(life[1]);
    close(pair[1]);
    _exit(read(life[0], &byte, 1) == 0 ? 0 : 1);  // lives until the test lets it go
  }
  owned.reset();
  char byte = 0;
  EXPECT_EQ(read(pair[1], &byte, 1), 0);
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  close(life[1]);
  close(life[0]);
  close(pair[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(ForkGuard, DestructorsInTheChildLeaveReusedNumbersAlone) {
  FileDescriptor owned(dup(0));
  EXPECT_TRUE(in_child([&] {
    const int number = owned.get();
    if (dup2(0, number) != number) return false;  // the child's own now
    owned.reset();
    return is_open(number);
  }));
}

TEST_F(ForkGuard, ReleasedDescriptorsStayOpen) {
  FileDescriptor owned(dup(0));
  const int released = owned.release();
  EXPECT_TRUE(in_child([&] { return is_open(released); }));
  close(released);
}

}  // namespace
}  // namespace rondo::base
