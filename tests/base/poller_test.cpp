#include "base/poller.hpp"

#include "base/socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace rondo::base {
namespace {

constexpr Nanoseconds second = 1'000'000'000;

struct Pair {
  FileDescriptor a;
  FileDescriptor b;
  Pair() {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
      throw system_error("pair", errno);
    a = FileDescriptor(ends[0]);
    b = FileDescriptor(ends[1]);
  }
};

TEST(Poller, CallsWhileTheDescriptorIsReadable) {
  const auto poller = Poller::make_real();
  Pair pair;
  int calls = 0;
  poller->add(pair.a.get(), false, [&] { ++calls; });
  poller->wait(0);
  EXPECT_EQ(calls, 0);
  ASSERT_EQ(write(pair.b.get(), "x", 1), 1);
  poller->wait(second);
  poller->wait(second);
  EXPECT_EQ(calls, 2) << "level-triggered: nothing was read";
  char byte = 0;
  ASSERT_EQ(read(pair.a.get(), &byte, 1), 1);
  poller->wait(0);
  EXPECT_EQ(calls, 2);
}

TEST(Poller, CallsWhenTheOtherEndHangsUp) {
  const auto poller = Poller::make_real();
  Pair pair;
  int calls = 0;
  poller->add(pair.a.get(), false, [&] { ++calls; });
  pair.b.reset();
  poller->wait(second);
  EXPECT_EQ(calls, 1);
}

TEST(Poller, ReportsWritableOnlyWhenAsked) {
  const auto poller = Poller::make_real();
  Pair pair;
  int calls = 0;
  poller->add(pair.a.get(), false, [&] { ++calls; });
  poller->wait(0);
  EXPECT_EQ(calls, 0);
  poller->set_writable(pair.a.get(), true);
  poller->wait(second);
  EXPECT_EQ(calls, 1);
  poller->set_writable(pair.a.get(), false);
  poller->wait(0);
  EXPECT_EQ(calls, 1);
}

TEST(Poller, ACallbackMayRemoveItselfAndOthers) {
  const auto poller = Poller::make_real();
  Pair one;
  Pair two;
  int calls = 0;
  const auto both_go = [&] {
    ++calls;
    poller->remove(one.a.get());
    poller->remove(two.a.get());
  };
  poller->add(one.a.get(), false, both_go);
  poller->add(two.a.get(), false, both_go);
  ASSERT_EQ(write(one.b.get(), "x", 1), 1);
  ASSERT_EQ(write(two.b.get(), "x", 1), 1);
  poller->wait(second);
  poller->wait(0);
  EXPECT_EQ(calls, 1) << "both were ready in one round, but the first removed the second";
}

TEST(Poller, AReusedDescriptorNumberIsNotTheOldOne) {
  const auto poller = Poller::make_real();
  int old_calls = 0;
  int new_calls = 0;
  int number = -1;
  {
    Pair pair;
    number = pair.a.get();
    poller->add(number, false, [&] { ++old_calls; });
    poller->remove(number);
  }
  Pair pair;
  ASSERT_EQ(pair.a.get(), number) << "the kernel gives the lowest free number";
  poller->add(number, false, [&] { ++new_calls; });
  ASSERT_EQ(write(pair.b.get(), "x", 1), 1);
  poller->wait(second);
  EXPECT_EQ(old_calls, 0);
  EXPECT_EQ(new_calls, 1);
}

TEST(Poller, WakeEndsAWaitAndIsNotLostBeforeOne) {
  const auto poller = Poller::make_real();
  poller->wake();
  poller->wait(3600 * second);
  std::thread other([&] { poller->wake(); });
  poller->wait(3600 * second);
  other.join();
  SUCCEED();
}

}  // namespace
}  // namespace rondo::base
