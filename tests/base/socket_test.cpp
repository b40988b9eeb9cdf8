#include "base/socket.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <fcntl.h>
#include <algorithm>

namespace rondo::base {
namespace {

TEST(SocketAddress, ParsesAndPrintsBothFamilies) {
  for (const char* text : {"10.0.0.1:5000", "127.0.0.1:65535", "[2001:db8::1]:80", "[::1]:1"}) {
    EXPECT_EQ(SocketAddress::parse(text).to_string(), text);
  }
  EXPECT_EQ(SocketAddress::parse("10.0.0.1").to_string(), "10.0.0.1:0");
  EXPECT_EQ(SocketAddress::parse("2001:db8::1").to_string(), "[2001:db8::1]:0");
  EXPECT_EQ(SocketAddress::parse("10.0.0.1:5").with_port(6).to_string(), "10.0.0.1:6");
}

TEST(SocketAddress, RefusesWhatIsNoAddress) {
  for (const char* text : {"", ":", "host:80", "10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:-1", "10.0.0:1", "[::1",
                           "[::1]80", "[::1]:", "[10.0.0.1", "1.2.3.4:80x", "[]:80"}) {
    try {
      SocketAddress::parse(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << text;
    }
  }
}

TEST(SocketAddress, KnowsLoopbackAndLinkLocal) {
  EXPECT_TRUE(SocketAddress::parse("127.9.9.9").is_loopback());
  EXPECT_TRUE(SocketAddress::parse("::1").is_loopback());
  EXPECT_FALSE(SocketAddress::parse("10.0.0.1").is_loopback());
  EXPECT_TRUE(SocketAddress::parse("169.254.3.4").is_link_local());
  EXPECT_TRUE(SocketAddress::parse("fe80::1").is_link_local());
  EXPECT_FALSE(SocketAddress::parse("fd00::1").is_link_local());
}

TEST(SocketAddress, BytesMakeTheSameAddressAgain) {
  const auto address = SocketAddress::parse("[2001:db8::7]:99");
  EXPECT_EQ(SocketAddress::from_bytes(address.address_bytes(), 99).to_string(), address.to_string());
  const std::vector<std::byte> five(5);
  EXPECT_THROW(SocketAddress::from_bytes(five, 1), Error);
}

TEST(InterfaceFilter, IncludesByBeginningAndExcludesWithACaret) {
  EXPECT_TRUE(interface_allowed("eth0", ""));
  EXPECT_TRUE(interface_allowed("eth0", "eth,ib"));
  EXPECT_FALSE(interface_allowed("wlan0", "eth,ib"));
  EXPECT_FALSE(interface_allowed("docker0", "^docker"));
  EXPECT_TRUE(interface_allowed("eth0", "^docker"));
  EXPECT_FALSE(interface_allowed("eth1", "eth, ^eth1"));
  EXPECT_TRUE(interface_allowed("eth0", "eth, ^eth1"));
}

TEST(UsableAddresses, ListsLoopbackLast) {
  const auto addresses = usable_addresses("");
  ASSERT_FALSE(addresses.empty());
  EXPECT_TRUE(std::is_partitioned(addresses.begin(), addresses.end(), [](const auto& a) { return !a.is_loopback(); }));
  EXPECT_TRUE(addresses.back().is_loopback());
  for (const auto& address : addresses) EXPECT_FALSE(address.is_link_local()) << address.to_string();
}

TEST(UsableAddresses, AFilterThatLeavesNothingNamesTheVariable) {
  try {
    usable_addresses("no-such-interface");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::configuration);
    EXPECT_NE(std::string(error.what()).find("RONDO_INTERFACES='no-such-interface'"), std::string::npos)
        << error.what();
  }
}

TEST(UsableAddresses, LoopbackCanBeAskedFor) {
  for (const auto& address : usable_addresses("lo")) EXPECT_TRUE(address.is_loopback());
}

TEST(Listener, AllAddressesShareOnePort) {
  const auto addresses = usable_addresses("");
  const Listener listener(addresses, {});
  ASSERT_FALSE(listener.addresses().empty());
  EXPECT_NE(listener.port(), 0);
  for (const auto& address : listener.addresses()) EXPECT_EQ(address.port(), listener.port());
}

TEST(Listener, ARangeThatIsTakenIsNamed) {
  const std::vector<SocketAddress> addresses{SocketAddress::parse("127.0.0.1")};
  const Listener holder(addresses, {});
  try {
    const Listener second(addresses, {holder.port(), holder.port()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::system);
    EXPECT_NE(error.message().find(std::to_string(holder.port())), std::string::npos) << error.what();
  }
}

TEST(PortRange, ParsesOneOrTwoPorts) {
  EXPECT_EQ(PortRange::parse("5000-5100", "X").last, 5100);
  EXPECT_EQ(PortRange::parse("5000", "X").first, 5000);
  for (const char* text : {"", "-", "0", "5100-5000", "5000-", "x", "5000-70000", "1-2-3"}) {
    EXPECT_THROW(PortRange::parse(text, "X"), Error) << text;
  }
}

TEST(Sockets, AConnectionCarriesBytesAndIsClosedOnExec) {
  const std::vector<SocketAddress> addresses{SocketAddress::parse("127.0.0.1")};
  const Listener listener(addresses, {});
  const auto client = start_connect(listener.addresses().front());
  pollfd waiting{client.get(), POLLOUT, 0};
  ASSERT_EQ(poll(&waiting, 1, 10'000), 1);
  ASSERT_EQ(connect_result(client.get()), 0);
  pollfd incoming{listener.sockets().front().get(), POLLIN, 0};
  ASSERT_EQ(poll(&incoming, 1, 10'000), 1);
  const auto server = accept_connection(listener.sockets().front().get());
  ASSERT_TRUE(server);
  EXPECT_FALSE(accept_connection(listener.sockets().front().get()));
  EXPECT_EQ(local_address(server.get()).port(), listener.port());
  for (const int fd : {client.get(), server.get()}) {
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  }
}

TEST(FileDescriptor, MovingLeavesNothingBehind) {
  FileDescriptor one(dup(0));
  const int number = one.get();
  FileDescriptor two = std::move(one);
  EXPECT_FALSE(one);  // NOLINT: the moved-from state is what is tested
  EXPECT_EQ(two.get(), number);
  two.reset();
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace rondo::base
