#include "transports/shm/descriptor_server.hpp"

#include <rondo/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace rondo::transport {
namespace {

enum class Verdict : std::uint8_t { given = 1, unknown = 2 };

struct UnixAddress {
  sockaddr_un native{};
  socklen_t bytes = 0;
  explicit UnixAddress(const std::string& name) {
    native.sun_family = AF_UNIX;
    if (name.size() + 1 > sizeof native.sun_path) {
      throw Error(ErrorCode::transport, fmt::format("a socket name of {} bytes; at most {} are possible", name.size(),
                                                    sizeof native.sun_path - 1));
    }
    std::copy(name.begin(), name.end(), native.sun_path + 1);  // behind the zero byte that makes it abstract
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&native); }
};

std::string random_name() {
  std::uint64_t random[2];
  if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    throw base::system_error("getrandom", errno);
  }
  return fmt::format("rondo-{:016x}{:016x}", random[0], random[1]);
}

void set_blocking_limit(int fd, base::Nanoseconds limit) {
  timeval time{};
  time.tv_sec = limit / 1'000'000'000;
  time.tv_usec = std::max<base::Nanoseconds>(1, limit % 1'000'000'000 / 1000);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

}  // namespace

DescriptorServer::DescriptorServer(base::System& system, base::Poller& poller, const bootstrap::Key& key, int rank,
                                   Find find)
    : system_(system), poller_(poller), key_(key), rank_(rank), find_(std::move(find)), name_(random_name()) {
  listener_ = base::FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener_) throw base::system_error("socket(AF_UNIX)", errno);
  const UnixAddress address(name_);
  if (::bind(listener_.get(), address.get(), address.bytes) != 0) throw base::system_error("bind(AF_UNIX)", errno);
  if (::listen(listener_.get(), 1024) != 0) throw base::system_error("listen(AF_UNIX)", errno);
  poller_.add(listener_.get(), false, [this] { accept_clients(); });
  listening_ = true;
}

DescriptorServer::~DescriptorServer() {
  if (listening_) poller_.remove(listener_.get());
  while (!clients_.empty()) drop(clients_.begin());
}

void DescriptorServer::accept_clients() {
  while (clients_.size() < most_clients) {
    base::FileDescriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) return;  // none left, or no descriptor free: the client's deadline or the next event decides
    const int number = fd.get();
    clients_.push_back(
        Client{std::move(fd), bootstrap::Handshake::accept(number, key_, rank_), system_.now() + client_deadline});
    const auto client = std::prev(clients_.end());
    poller_.add(number, false, [this, client] { step(client); });
    step(client);
  }
  // Full: the listener would keep the service thread awake.
  if (listening_) poller_.remove(listener_.get());
  listening_ = false;
}

void DescriptorServer::step(ClientIterator client) {
  try {
    const auto progress = client->handshake.step();
    if (progress != bootstrap::Handshake::Progress::done) {
      poller_.set_writable(client->fd.get(), progress == bootstrap::Handshake::Progress::want_write);
      return;
    }
    answer(*client);
  } catch (const Error&) {
    // A stranger, or a client that broke off: it learns from the closed connection.
  }
  drop(client);
}

void DescriptorServer::drop(ClientIterator client) {
  poller_.remove(client->fd.get());
  clients_.erase(client);
  if (!listening_ && clients_.size() < most_clients) {
    poller_.add(listener_.get(), false, [this] { accept_clients(); });
    listening_ = true;
  }
}

void DescriptorServer::answer(const Client& client) {
  if (client.handshake.purpose() != bootstrap::purpose_shm) return;
  const auto [kind, id] = decode_memory_request(client.handshake.hello());
  const auto memory = kind == MemoryKind::arena || kind == MemoryKind::window ? find_(kind, id) : nullptr;

  auto verdict = memory == nullptr ? Verdict::unknown : Verdict::given;
  iovec part{&verdict, sizeof verdict};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (memory != nullptr) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = memory->fd();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  // One byte into an empty socket: it fits, or the client is gone.
  static_cast<void>(::sendmsg(client.fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void DescriptorServer::service() {
  const base::Nanoseconds now = system_.now();
  while (!clients_.empty() && clients_.front().deadline <= now) drop(clients_.begin());  // oldest first
}

std::shared_ptr<base::SharedMemory> request_memory(const std::string& name, const bootstrap::Key& key, int own_rank,
                                                   int peer, MemoryKind kind, std::uint64_t id, bool writable,
                                                   base::Nanoseconds deadline) {
  base::System& system = base::System::real();
  const UnixAddress address(name);
  base::FileDescriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) throw base::system_error("socket(AF_UNIX)", errno);
  // A full queue of the listener makes connect wait, so it gets the limit of a blocking call.
  set_blocking_limit(fd.get(), deadline - system.now());
  if (::connect(fd.get(), address.get(), address.bytes) != 0) {
    throw Error(
        ErrorCode::transport,
        fmt::format("rank {}'s Unix socket does not answer here: {}", peer, std::generic_category().message(errno)),
        "ranks share memory only within one host and network namespace", peer);
  }
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) throw base::system_error("fcntl", errno);

  auto handshake = bootstrap::Handshake::initiate(fd.get(), key, bootstrap::purpose_shm, own_rank, peer,
                                                  encode(MemoryRequest{kind, id}));
  handshake.run(deadline);

  for (;;) {
    Verdict verdict{};
    iovec part{&verdict, sizeof verdict};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(fd.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      const base::Nanoseconds left = deadline - system.now();
      if (left <= 0) {
        throw Error(ErrorCode::deadline, fmt::format("rank {} did not pass its shared memory in time", peer),
                    "its service thread may be stopped", peer);
      }
      pollfd wanted{fd.get(), POLLIN, 0};
      ::poll(&wanted, 1, base::to_milliseconds(left));
      continue;
    }
    if (got < 0) throw base::system_error("recvmsg", errno);
    base::FileDescriptor passed;
    if (const cmsghdr* const header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_level == SOL_SOCKET &&
                                                               header->cmsg_type == SCM_RIGHTS &&
                                                               header->cmsg_len == CMSG_LEN(sizeof(int))) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header), sizeof number);
      passed = base::FileDescriptor(number);
    }
    if (got == 1 && verdict == Verdict::unknown) return nullptr;
    if (got != 1 || verdict != Verdict::given || !passed) {
      throw Error(ErrorCode::transport, fmt::format("rank {} closed its socket without passing its memory", peer), {},
                  peer);
    }
    auto memory = base::SharedMemory::adopt(passed.release(), writable, peer);
    memory.close_descriptor();
    return std::make_shared<base::SharedMemory>(std::move(memory));
  }
}

}  // namespace rondo::transport
