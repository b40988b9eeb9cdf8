#include "transports/tcp/receiver.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace rondo::transport::tcp {
namespace {

// A sender may have ten segments on the way before the first acknowledgement (RFC 6928).
constexpr std::uint64_t acknowledged_together = 8;

}  // namespace

std::shared_ptr<TcpReceiver> TcpReceiver::create(const Surroundings& around, const ConnectionKey& key,
                                                 const FifoLayout& layout, base::FileDescriptor fd) {
  auto receiver = std::make_shared<TcpReceiver>(around, key, layout, std::move(fd));
  receiver->token_ = around.events.add(receiver->fd_.get(), receiver);
  return receiver;
}

TcpReceiver::TcpReceiver(const Surroundings& around, const ConnectionKey& key, const FifoLayout& layout,
                         base::FileDescriptor fd)
    : around_(around), key_(key), fifo_(layout), fd_(std::move(fd)) {
  end_.lines = fifo_.parts().lines;
  end_.data = fifo_.parts().data;
  end_.credit = fifo_.parts().credit;
  end_.slots = layout.slots;
  end_.slot_bytes = layout.slot_bytes;
  end_.system = &around.system;
  end_.pump = this;
  end_.peer = key.source;
}

TcpReceiver::~TcpReceiver() {
  if (token_ != 0) around_.events.remove(fd_.get(), token_);
}

bool TcpReceiver::full() const {
  return next_ - end_.credit->consumed.load(std::memory_order_relaxed) >= fifo_.layout().slots;
}

std::byte* TcpReceiver::destination() {
  return header_.kind() == PayloadKind::inlined ? fifo_.line(next_).payload : fifo_.slot(next_);
}

void TcpReceiver::begin_message() {
  header_ = decode_header(&ahead_[ahead_first_], next_ + 1, fifo_.layout().slot_bytes, key_.source);
  ahead_first_ += header_bytes;
  in_message_ = true;
  got_ = 0;
}

// Takes what is in the read-ahead buffer. False when no slot is free.
bool TcpReceiver::parse() {
  for (;;) {
    if (!in_message_) {
      if (full()) return false;
      if (ahead_last_ - ahead_first_ < header_bytes) return true;
      begin_message();
    }
    const std::size_t take = std::min(ahead_last_ - ahead_first_, header_.length() - got_);
    if (take != 0) std::memcpy(destination() + got_, &ahead_[ahead_first_], take);
    ahead_first_ += take;
    got_ += take;
    if (got_ < header_.length()) return true;
    SlotLine& line = fifo_.line(next_);
    line.signature = header_.signature;
    line.length_and_kind = header_.length_and_kind;
    line.number.store(++next_, std::memory_order_release);  // matches the acquire load in ReceiveEnd::try_peek
    in_message_ = false;
    if (next_ - acknowledged_ >= acknowledged_together) acknowledge();
  }
}

// A socket that only receives acknowledges each small message by a packet of its own, which costs as much as sending
// one (docs/performance.md). So the kernel is told to hold acknowledgements back (turning TCP_QUICKACK off), and to
// send what is due (turning it on) every few messages and before this rank sleeps. It still acknowledges every second
// full segment, and whatever is 40 ms old, by itself.
void TcpReceiver::acknowledge() {
  for (const int quick : {1, 0}) ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_QUICKACK, &quick, sizeof quick);
  acknowledged_ = next_;
}

// One system call: `direct` bytes into the message that is coming in, what is behind them into the read-ahead buffer.
ssize_t TcpReceiver::receive(std::size_t direct) {
  std::byte* const ahead = &ahead_[ahead_last_];
  const std::size_t room = ahead_bytes - ahead_last_;
  if (direct == 0) return ::recv(fd_.get(), ahead, room, MSG_DONTWAIT);
  std::array<iovec, 2> parts{{{destination() + got_, direct}, {ahead, room}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
}

void TcpReceiver::progress() {
  // What the owner has not used yet comes first; the kernel keeps the rest.
  if (next_ != end_.credit->consumed.load(std::memory_order_relaxed)) return;
  while (parse()) {
    if (at_end_) return ended(end_error_);
    // At most a part of a header is left ahead: move it to the front.
    std::copy(ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_first_),
              ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_last_), ahead_.begin());
    ahead_last_ -= std::exchange(ahead_first_, 0);

    const std::size_t direct = in_message_ ? header_.length() - got_ : 0;
    const ssize_t result = receive(direct);
    if (result < 0) {
      if (errno == EAGAIN) return;
      if (errno == EINTR) continue;
    }
    if (result <= 0) {
      at_end_ = true;
      end_error_ = result < 0 ? errno : 0;
      return ended(end_error_);
    }
    const auto bytes = static_cast<std::size_t>(result);
    const bool emptied = bytes < direct + ahead_bytes - ahead_last_;  // the socket had no more
    const std::size_t into_slot = std::min(bytes, direct);
    got_ += into_slot;
    ahead_last_ += bytes - into_slot;
    if (emptied) {
      parse();
      return;
    }
  }
}

// The socket's end is an error only once the owner has had all that came before it.
void TcpReceiver::ended(int error) {
  if (next_ != end_.credit->consumed.load(std::memory_order_relaxed)) return;
  throw Error(ErrorCode::transport,
              fmt::format("the tcp connection from rank {} {}{}", key_.source,
                          error == 0 ? "was closed by that rank" : "broke: receive: ",
                          error == 0 ? std::string() : std::generic_category().message(error)),
              "that rank may have ended; see its output", key_.source);
}

void TcpReceiver::arm() {
  if (full() || at_end_) return;  // the next news is the owner's own
  if (acknowledged_ != next_) acknowledge();
  if (armed_.exchange(true, std::memory_order_seq_cst)) return;
  around_.events.arm(fd_.get(), token_, true, false);
}

// As in TcpSender::on_wire(): clear, then ring.
void TcpReceiver::on_wire() noexcept {
  armed_.exchange(false, std::memory_order_seq_cst);
  base::full_barrier(around_.bell);
  base::ring(around_.bell, around_.system);
}

}  // namespace rondo::transport::tcp
