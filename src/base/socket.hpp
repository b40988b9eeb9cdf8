// Sockets: an owned descriptor, an IPv4 / IPv6 address, non-blocking listening and connecting, this host's addresses.
//
// Free functions are thread-safe; objects belong to one thread at a time. Every descriptor made here is non-blocking
// and closed on exec. Errors are rondo::Error(system) with the call and errno's text, unless said otherwise.
#pragma once

#include <rondo/error.hpp>

#include "base/fork_guard.hpp"
#include "base/system.hpp"

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::base {

// "connect to 10.0.0.1:5000: Connection refused", for callers to throw.
Error system_error(std::string_view what, int error_number, std::string hint = {});

// For poll and epoll: rounded up, so that a wait does not end just before the time; at most an hour; 0 when passed.
int to_milliseconds(Nanoseconds limit);

// Forked children close what is owned here (fork_guard.hpp).
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) { own_descriptor(fd); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    forget_descriptor(fd_);
    return std::exchange(fd_, -1);
  }
  void reset();

 private:
  int fd_ = -1;
};

// An IPv4 or IPv6 address with a port.
class SocketAddress {
 public:
  SocketAddress() = default;  // 0.0.0.0:0
  // "10.0.0.1:5000" or "[2001:db8::1]:5000"; the port may be missing (0). Numbers only, no names. Throws
  // Error(invalid_argument).
  static SocketAddress parse(std::string_view text);
  // 4 or 16 bytes in network order. Throws Error(invalid_argument) for other lengths.
  static SocketAddress from_bytes(std::span<const std::byte> address, std::uint16_t port);
  static SocketAddress from_native(const sockaddr* address);

  std::string to_string() const;
  std::vector<std::byte> address_bytes() const;
  std::uint16_t port() const;
  SocketAddress with_port(std::uint16_t port) const;
  bool is_ipv6() const { return storage_.ss_family == AF_INET6; }
  bool is_loopback() const;
  bool is_link_local() const;

  const sockaddr* native() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t native_bytes() const;
  int family() const { return storage_.ss_family; }

 private:
  sockaddr_storage storage_ = [] {
    sockaddr_storage empty{};
    empty.ss_family = AF_INET;
    return empty;
  }();
};

// Ports that may be used; {0, 0}: the kernel chooses.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  // "5000-5100" or "5000"; throws Error(configuration) naming `variable`.
  static PortRange parse(std::string_view text, std::string_view variable);
};

// One listening socket on each address, all at the same port.
class Listener {
 public:
  Listener() = default;
  // Addresses that can't be bound (one just went away) are skipped; throws when none is left, or when a port of the
  // range can't be had.
  Listener(std::span<const SocketAddress> addresses, PortRange ports);

  const std::vector<FileDescriptor>& sockets() const { return sockets_; }
  const std::vector<SocketAddress>& addresses() const { return addresses_; }
  std::uint16_t port() const { return addresses_.empty() ? std::uint16_t{0} : addresses_.front().port(); }

 private:
  std::vector<FileDescriptor> sockets_;
  std::vector<SocketAddress> addresses_;
};

inline constexpr int listen_backlog = 1024;
FileDescriptor listen_on(const SocketAddress& address, int backlog = listen_backlog);
// The next waiting connection, without delay (TCP_NODELAY); empty when there is none.
FileDescriptor accept_connection(int listener);
// Begins to connect. When the descriptor turns writable, connect_result() says how it went. Failures that show at once
// throw.
FileDescriptor start_connect(const SocketAddress& address);
// 0: connected; else an errno value.
int connect_result(int fd);
SocketAddress local_address(int fd);

// This host's addresses that others may reach, IPv4 first, then IPv6, loopback behind all. Interfaces that are down and
// link-local addresses are left out. `filter` (RONDO_INTERFACES): names' beginnings, comma-separated, with ^ to
// exclude: "eth,ib,^docker"; empty allows all. Throws Error(configuration) when the filter leaves nothing.
std::vector<SocketAddress> usable_addresses(std::string_view filter);

// Whether `name` passes the filter; the rule of usable_addresses.
bool interface_allowed(std::string_view name, std::string_view filter);

}  // namespace rondo::base
