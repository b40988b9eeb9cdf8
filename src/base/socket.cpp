#include "base/socket.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace rondo::base {
namespace {

// Copies of sockaddr_storage as what it holds, without aliasing.
template <class T>
T view_as(const sockaddr_storage& storage) {
  T out{};
  std::memcpy(&out, &storage, sizeof out);
  return out;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(value);
}

void without_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails harmlessly on Unix sockets
}

// 0, or the errno value of what failed.
int open_listener(const SocketAddress& address, int backlog, FileDescriptor& out) {
  FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  const int on = 1;
  // A fixed port can be had again while old connections of it linger.
  if (address.port() != 0) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.is_ipv6()) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), address.native(), address.native_bytes()) != 0) return errno;
  if (::listen(socket.get(), backlog) != 0) return errno;
  out = std::move(socket);
  return 0;
}

std::vector<std::string_view> split_filter(std::string_view filter) {
  std::vector<std::string_view> items;
  while (!filter.empty()) {
    const auto comma = filter.find(',');
    auto item = filter.substr(0, comma);
    filter = comma == std::string_view::npos ? std::string_view() : filter.substr(comma + 1);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (!item.empty()) items.push_back(item);
  }
  return items;
}

}  // namespace

Error system_error(std::string_view what, int error_number, std::string hint) {
  return Error(ErrorCode::system, fmt::format("{}: {}", what, std::strerror(error_number)), std::move(hint));
}

int to_milliseconds(Nanoseconds limit) {
  constexpr Nanoseconds hour = 3'600'000;
  if (limit <= 0) return 0;
  return static_cast<int>(std::min(limit / 1'000'000 + 1, hour));
}

void FileDescriptor::reset() {
  if (forget_descriptor(fd_)) ::close(fd_);
  fd_ = -1;
}

SocketAddress SocketAddress::parse(std::string_view text) {
  const auto refuse = [&] {
    return Error(ErrorCode::invalid_argument,
                 fmt::format("'{}' is no address: expected numbers such as 10.0.0.1:5000 or [2001:db8::1]:5000", text));
  };
  // inet_pton() takes C strings, and would not see what stands behind a zero byte.
  if (text.find('\0') != std::string_view::npos) throw refuse();
  std::string_view host = text;
  std::string_view port_text;
  if (!text.empty() && text.front() == '[') {
    const auto close = text.find(']');
    if (close == std::string_view::npos) throw refuse();
    host = text.substr(1, close - 1);
    const auto tail = text.substr(close + 1);
    if (!tail.empty() && tail.front() != ':') throw refuse();
    if (!tail.empty()) port_text = tail.substr(1);
    if (!tail.empty() && port_text.empty()) throw refuse();
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    host = text.substr(0, text.find(':'));
    port_text = text.substr(text.find(':') + 1);
    if (port_text.empty()) throw refuse();
  }
  std::uint16_t port = 0;
  if (!port_text.empty()) {
    const auto parsed = parse_port(port_text);
    if (!parsed) throw refuse();
    port = *parsed;
  }
  const std::string host_text(host);
  std::array<std::byte, 16> bytes{};
  if (inet_pton(AF_INET, host_text.c_str(), bytes.data()) == 1) return from_bytes(std::span(bytes).first(4), port);
  if (inet_pton(AF_INET6, host_text.c_str(), bytes.data()) == 1) return from_bytes(bytes, port);
  throw refuse();
}

SocketAddress SocketAddress::from_bytes(std::span<const std::byte> address, std::uint16_t port) {
  SocketAddress out;
  if (address.size() == 4) {
    sockaddr_in native{};
    native.sin_family = AF_INET;
    native.sin_port = htons(port);
    std::memcpy(&native.sin_addr, address.data(), 4);
    std::memcpy(&out.storage_, &native, sizeof native);
  } else if (address.size() == 16) {
    sockaddr_in6 native{};
    native.sin6_family = AF_INET6;
    native.sin6_port = htons(port);
    std::memcpy(&native.sin6_addr, address.data(), 16);
    std::memcpy(&out.storage_, &native, sizeof native);
  } else {
    throw Error(ErrorCode::invalid_argument, fmt::format("an address has 4 or 16 bytes, not {}", address.size()));
  }
  return out;
}

SocketAddress SocketAddress::from_native(const sockaddr* address) {
  SocketAddress out;
  if (address->sa_family == AF_INET) {
    std::memcpy(&out.storage_, address, sizeof(sockaddr_in));
  } else if (address->sa_family == AF_INET6) {
    std::memcpy(&out.storage_, address, sizeof(sockaddr_in6));
  } else {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("address family {} is neither IPv4 nor IPv6", int{address->sa_family}));
  }
  return out;
}

std::string SocketAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto bytes = address_bytes();
  inet_ntop(family(), bytes.data(), text.data(), static_cast<socklen_t>(text.size()));
  return is_ipv6() ? fmt::format("[{}]:{}", text.data(), port()) : fmt::format("{}:{}", text.data(), port());
}

std::vector<std::byte> SocketAddress::address_bytes() const {
  if (is_ipv6()) {
    const auto native = view_as<sockaddr_in6>(storage_);
    const auto bytes = std::as_bytes(std::span<const in6_addr, 1>(&native.sin6_addr, 1));
    return {bytes.begin(), bytes.end()};
  }
  const auto native = view_as<sockaddr_in>(storage_);
  const auto bytes = std::as_bytes(std::span<const in_addr, 1>(&native.sin_addr, 1));
  return {bytes.begin(), bytes.end()};
}

std::uint16_t SocketAddress::port() const {
  return is_ipv6() ? ntohs(view_as<sockaddr_in6>(storage_).sin6_port) : ntohs(view_as<sockaddr_in>(storage_).sin_port);
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const { return from_bytes(address_bytes(), port); }

bool SocketAddress::is_loopback() const {
  if (is_ipv6()) {
    const auto native6 = view_as<sockaddr_in6>(storage_);
    return IN6_IS_ADDR_LOOPBACK(&native6.sin6_addr);
  }
  return address_bytes()[0] == std::byte{127};
}

bool SocketAddress::is_link_local() const {
  const auto bytes = address_bytes();
  if (is_ipv6()) return bytes[0] == std::byte{0xfe} && (bytes[1] & std::byte{0xc0}) == std::byte{0x80};
  return bytes[0] == std::byte{169} && bytes[1] == std::byte{254};
}

socklen_t SocketAddress::native_bytes() const { return is_ipv6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

PortRange PortRange::parse(std::string_view text, std::string_view variable) {
  const auto dash = text.find('-');
  const auto first = parse_port(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_port(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *last < *first) {
    throw Error(
        ErrorCode::configuration,
        fmt::format("{}='{}': expected two ports, the first not above the second, such as 5000-5100", variable, text));
  }
  return {*first, *last};
}

Listener::Listener(std::span<const SocketAddress> addresses, PortRange ports) {
  std::string last_error = "no address to listen on";
  // A port that the kernel gave us on the first address may be taken on another one: then all is tried again.
  const int attempts = ports.first == 0 ? 16 : ports.last - ports.first + 1;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    auto port = static_cast<std::uint16_t>(ports.first == 0 ? 0 : ports.first + attempt);
    sockets_.clear();
    addresses_.clear();
    bool taken = false;
    for (const auto& address : addresses) {
      FileDescriptor socket;
      const int error = open_listener(address.with_port(port), listen_backlog, socket);
      if (error != 0) {
        last_error = fmt::format("{}: {}", address.with_port(port).to_string(), std::strerror(error));
        taken = error == EADDRINUSE;
        if (taken) break;
        continue;
      }
      if (port == 0) port = local_address(socket.get()).port();
      addresses_.push_back(address.with_port(port));
      sockets_.push_back(std::move(socket));
    }
    if (!taken && !sockets_.empty()) return;
  }
  sockets_.clear();
  addresses_.clear();
  throw Error(ErrorCode::system,
              ports.first == 0
                  ? fmt::format("cannot listen: {}", last_error)
                  : fmt::format("cannot listen on a port of {}-{}: {}", ports.first, ports.last, last_error),
              ports.first == 0 ? "" : "choose a free or wider range of ports");
}

FileDescriptor listen_on(const SocketAddress& address, int backlog) {
  FileDescriptor socket;
  const int error = open_listener(address, backlog, socket);
  if (error != 0) throw system_error("listen on " + address.to_string(), error);
  return socket;
}

FileDescriptor accept_connection(int listener) {
  FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    without_delay(socket.get());
    return socket;
  }
  switch (errno) {
    case EAGAIN:
    case EINTR:
    // The connection died before it was accepted; Linux reports errors of the network here, too.
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH: return FileDescriptor();
    case EMFILE:
    case ENFILE: throw system_error("accept", errno, "raise the limit on open files: ulimit -n");
    default: throw system_error("accept", errno);
  }
}

FileDescriptor start_connect(const SocketAddress& address) {
  FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) throw system_error("socket", errno);
  without_delay(socket.get());
  if (::connect(socket.get(), address.native(), address.native_bytes()) != 0 && errno != EINPROGRESS) {
    throw system_error("connect to " + address.to_string(), errno);
  }
  return socket;
}

int connect_result(int fd) {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  return error;
}

SocketAddress local_address(int fd) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) throw system_error("getsockname", errno);
  return SocketAddress::from_native(reinterpret_cast<const sockaddr*>(&storage));
}

bool interface_allowed(std::string_view name, std::string_view filter) {
  bool any_include = false;
  bool included = false;
  for (const auto item : split_filter(filter)) {
    if (item.front() == '^') {
      if (item.size() > 1 && name.starts_with(item.substr(1))) return false;
    } else {
      any_include = true;
      included = included || name.starts_with(item);
    }
  }
  return !any_include || included;
}

std::vector<SocketAddress> usable_addresses(std::string_view filter) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) throw system_error("getifaddrs", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);

  std::vector<SocketAddress> usable;
  std::vector<SocketAddress> loopback;  // of interfaces that the filter does not exclude
  std::vector<std::string> names;
  bool named_loopback = false;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const auto address = SocketAddress::from_native(entry->ifa_addr).with_port(0);
    if (address.is_link_local()) continue;
    const std::string name = entry->ifa_name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    const bool allowed = interface_allowed(name, filter);
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0 || address.is_loopback()) {
      // Ranks of one host can always talk over it, so a filter that merely does not mention it leaves it in; but it
      // can't stand in for interfaces that were asked for.
      const bool excluded = !interface_allowed(name, std::string(filter) + "," + name);
      if (!excluded && address.is_loopback()) loopback.push_back(address);
      named_loopback = named_loopback || allowed;
    } else if (allowed) {
      usable.push_back(address);
    }
  }
  if (usable.empty() && !named_loopback) {
    throw Error(ErrorCode::configuration,
                fmt::format("RONDO_INTERFACES='{}' leaves no usable network interface; this host has: {}", filter,
                            fmt::join(names, ", ")),
                "give the beginnings of names to use, or ^ and the beginning of names to avoid: eth,^docker");
  }
  const auto ipv4_first = [](const SocketAddress& a, const SocketAddress& b) { return !a.is_ipv6() && b.is_ipv6(); };
  std::stable_sort(usable.begin(), usable.end(), ipv4_first);
  std::stable_sort(loopback.begin(), loopback.end(), ipv4_first);
  usable.insert(usable.end(), loopback.begin(), loopback.end());
  return usable;
}

}  // namespace rondo::base
