#include "transports/tcp/sender.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace rondo::transport::tcp {
namespace {

// Messages of one sendmsg: enough that small ones share a system call.
constexpr std::size_t batch = 16;

}  // namespace

TcpSender::TcpSender(const Surroundings& around, const ConnectionKey& key, const FifoLayout& layout,
                     std::vector<base::SocketAddress> addresses)
    : around_(around), key_(key), fifo_(layout), addresses_(std::move(addresses)) {
  end_.lines = fifo_.parts().lines;
  end_.data = fifo_.parts().data;
  end_.credit = fifo_.parts().credit;
  end_.slots = layout.slots;
  end_.slot_bytes = layout.slot_bytes;
  end_.system = &around.system;
  end_.pump = this;
  end_.peer = key.destination;
}

TcpSender::~TcpSender() { disconnect(); }

void TcpSender::flush() {
  const std::lock_guard lock(mutex_);
  advance();
  if (state_ != State::streaming || published(next_)) arm_wire();
}

void TcpSender::progress() {
  if (streaming_.load(std::memory_order_relaxed) && idle()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) advance();  // else the service thread is at it
}

bool TcpSender::idle() const { return end_.credit->consumed.load(std::memory_order_acquire) == end_.sent; }

void TcpSender::arm() {
  if (streaming_.load(std::memory_order_relaxed) && idle()) return;
  const std::lock_guard lock(mutex_);
  if (!broken_) arm_wire();
}

// The owner arms its bell, then reads armed_; here armed_ is cleared, then the bell is read. So either the owner sees
// it cleared and asks again, or this ring wakes it.
void TcpSender::on_wire() noexcept {
  armed_.exchange(false, std::memory_order_seq_cst);
  {
    const std::lock_guard lock(mutex_);
    try {
      if (!broken_) advance();
      if (!broken_ && (state_ != State::streaming || published(next_))) arm_wire();
    } catch (const Error& error) {
      broken_ = error;
    } catch (const std::exception& error) {
      broken_.emplace(ErrorCode::transport, error.what(), std::string(), key_.destination);
    }
  }
  base::full_barrier(around_.bell);
  base::ring(around_.bell, around_.system);
}

void TcpSender::arm_wire() {
  if (!fd_) return;
  const bool reads = state_ == State::proving && wants_read_;
  if (armed_.load(std::memory_order_seq_cst) && armed_reads_ == reads) return;
  armed_.store(true, std::memory_order_seq_cst);
  armed_reads_ = reads;
  around_.events.arm(fd_.get(), token_, reads, !reads);
}

bool TcpSender::published(std::uint64_t message) const {
  // Matches the release store in SendEnd::publish.
  return fifo_.line(message).number.load(std::memory_order_acquire) == message + 1;
}

// Goes on as far as it can without blocking.
void TcpSender::advance() {
  if (broken_) throw Error(*broken_);
  try {
    while (step()) {
    }
  } catch (const Error& error) {
    broken_ = error;
    streaming_.store(false, std::memory_order_relaxed);  // the owner must come here to be told
    disconnect();
    throw;
  }
}

// False when only the socket can bring news.
bool TcpSender::step() {
  switch (state_) {
    case State::starting: start_next(); return true;
    case State::connecting: {
      pollfd wanted{fd_.get(), POLLOUT, 0};
      if (::poll(&wanted, 1, 0) == 0) {
        if (around_.system.now() < try_deadline_) return false;
        fail_address("no answer");
        return true;
      }
      if (const int error = base::connect_result(fd_.get()); error != 0) {
        fail_address(std::generic_category().message(error));
        return true;
      }
      handshake_ =
          bootstrap::Handshake::initiate(fd_.get(), around_.key, bootstrap::purpose_tcp, around_.rank, key_.destination,
                                         encode(Hello{HelloKind::data, key_, fifo_.layout()}));
      state_ = State::proving;
      return true;
    }
    case State::proving:
      try {
        const auto progress = handshake_->step();
        if (progress == bootstrap::Handshake::Progress::done) {
          handshake_.reset();
          state_ = State::streaming;
          streaming_.store(true, std::memory_order_relaxed);
          return true;
        }
        wants_read_ = progress == bootstrap::Handshake::Progress::want_read;
      } catch (const Error& error) {
        fail_address(error.message());
        return true;
      }
      if (around_.system.now() < try_deadline_) return false;
      fail_address("no answer to the handshake");
      return true;
    case State::streaming: return stream();
  }
  return false;
}

void TcpSender::start_next() {
  if (next_address_ == addresses_.size()) {
    throw Error(ErrorCode::transport,
                fmt::format("rank {} cannot be reached over tcp: {}", key_.destination,
                            failures_.empty() ? "it offers no address" : failures_),
                "check firewalls, or choose interfaces with RONDO_INTERFACES", key_.destination);
  }
  try {
    fd_ = base::start_connect(addresses_[next_address_]);
    token_ = around_.events.add(fd_.get(), weak_from_this());
  } catch (const Error& error) {
    fail_address(error.message());
    return;
  }
  try_deadline_ = around_.system.now() + address_deadline;
  state_ = State::connecting;
}

void TcpSender::fail_address(const std::string& why) {
  disconnect();
  failures_ += fmt::format("{}{}: {}", failures_.empty() ? "" : "; ", addresses_[next_address_].to_string(), why);
  ++next_address_;
  state_ = State::starting;
}

void TcpSender::disconnect() noexcept {
  handshake_.reset();
  if (!fd_) return;
  if (token_ != 0) around_.events.remove(fd_.get(), std::exchange(token_, 0));
  fd_.reset();
  armed_.store(false, std::memory_order_seq_cst);
}

// One sendmsg of the published messages. True if there is more, and the socket may take it.
bool TcpSender::stream() {
  std::array<WireHeader, batch> headers;
  std::array<iovec, 2 * batch> parts;
  std::array<std::size_t, batch> sizes;
  std::size_t messages = 0;
  std::size_t part_count = 0;
  std::size_t total = 0;
  while (messages < batch && messages < fifo_.layout().slots && published(next_ + messages)) {
    const std::uint64_t index = next_ + messages;
    SlotLine& line = fifo_.line(index);
    const MessageHeader header{line.signature, line.length_and_kind, index + 1};
    if (header.kind() == PayloadKind::reference || header.length() > fifo_.layout().slot_bytes) {
      throw Error(ErrorCode::internal, fmt::format("a message of kind {} and {} bytes cannot be sent over tcp",
                                                   static_cast<int>(header.kind()), header.length()));
    }
    headers[messages] = encode(header);
    parts[part_count++] = {headers[messages].data(), header_bytes};
    if (header.length() != 0) {
      parts[part_count++] = {header.kind() == PayloadKind::inlined ? line.payload : fifo_.slot(index), header.length()};
    }
    sizes[messages] = header_bytes + header.length();
    total += sizes[messages];
    ++messages;
  }
  if (messages == 0) return false;

  // What is already out of the first message.
  std::size_t skip = offset_;
  std::size_t first = 0;
  while (skip >= parts[first].iov_len) skip -= parts[first++].iov_len;
  parts[first].iov_base = static_cast<std::byte*>(parts[first].iov_base) + skip;
  parts[first].iov_len -= skip;
  total -= offset_;

  msghdr message{};
  message.msg_iov = &parts[first];
  message.msg_iovlen = part_count - first;
  const ssize_t taken = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (taken < 0) {
    if (errno == EAGAIN) return false;
    if (errno == EINTR) return true;
    throw Error(ErrorCode::transport,
                fmt::format("the tcp connection to rank {} broke: sendmsg: {}", key_.destination,
                            std::generic_category().message(errno)),
                "that rank may have ended; see its output", key_.destination);
  }
  std::size_t out = offset_ + static_cast<std::size_t>(taken);
  for (std::size_t i = 0; i < messages && out >= sizes[i]; ++i) {
    out -= sizes[i];
    ++next_;
  }
  offset_ = out;
  // Matches the acquire load in SendEnd::try_acquire.
  end_.credit->consumed.store(next_, std::memory_order_release);
  return static_cast<std::size_t>(taken) == total;
}

}  // namespace rondo::transport::tcp
