#include "bootstrap/stream_link.hpp"

#include "base/bytes.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rondo::bootstrap {
namespace {

constexpr std::size_t header_bytes = 4;
constexpr base::Nanoseconds linger = 200'000'000;

}  // namespace

StreamLink::StreamLink(base::FileDescriptor socket) : socket_(std::move(socket)), creator_(getpid()) {}

StreamLink::~StreamLink() {
  if (getpid() != creator_) return;
  if (poller_ != nullptr) poller_->remove(socket_.get());
  auto& clock = base::System::real();
  const base::Nanoseconds until = clock.now() + linger;
  while (!flush()) {
    const base::Nanoseconds left = until - clock.now();
    if (left <= 0) break;
    pollfd entry{socket_.get(), POLLOUT, 0};
    ::poll(&entry, 1, base::to_milliseconds(left));
  }
  // Closing with unread bytes would reset the connection and destroy our last words on their way: read them first.
  ::shutdown(socket_.get(), SHUT_WR);
  std::array<std::byte, 4096> scratch;
  while (::recv(socket_.get(), scratch.data(), scratch.size(), 0) > 0 && clock.now() < until) {
  }
}

void StreamLink::send(std::span<const std::byte> frame) {
  if (frame.size() > frame_limit) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a control frame of {} bytes is too long; at most {} fit", frame.size(), frame_limit));
  }
  base::ByteWriter writer;
  writer.put_bytes(frame);
  const std::lock_guard lock(mutex_);
  if (broken_) return;
  if (outgoing_bytes_ + writer.size() > backlog_limit) {
    broken_ = true;
    why_ = fmt::format("it has not read {} bytes that wait for it", outgoing_bytes_);
    outgoing_.clear();
    ::shutdown(socket_.get(), SHUT_RDWR);  // the service thread sees the end and reports it
    return;
  }
  outgoing_bytes_ += writer.size();
  outgoing_.push_back(writer.take());
  const bool was_pending = outgoing_.size() > 1;
  if (!was_pending && !flush_locked() && poller_ != nullptr) poller_->set_writable(socket_.get(), true);
}

bool StreamLink::flush() {
  const std::lock_guard lock(mutex_);
  return flush_locked();
}

bool StreamLink::flush_locked() {
  while (!broken_ && !outgoing_.empty()) {
    const auto& first = outgoing_.front();
    const auto count =
        ::send(socket_.get(), first.data() + sent_of_first_, first.size() - sent_of_first_, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return false;
      // Not the end of receiving: what the neighbour wrote before it went is still to be read.
      broken_ = true;
      if (errno != EPIPE && errno != ECONNRESET) why_ = std::strerror(errno);
      break;
    }
    sent_of_first_ += static_cast<std::size_t>(count);
    if (sent_of_first_ == first.size()) {
      outgoing_bytes_ -= first.size();
      sent_of_first_ = 0;
      outgoing_.pop_front();
    }
  }
  if (broken_) outgoing_.clear();
  return true;
}

void StreamLink::attach(base::Poller& poller) {
  poller_ = &poller;
  const bool pending = !flush();
  poller.add(socket_.get(), pending, [this] {
    // Reading is receive()'s, which the service thread calls next.
    const std::lock_guard lock(mutex_);
    if (flush_locked()) poller_->set_writable(socket_.get(), false);
  });
}

void StreamLink::mark_broken(std::string why) {
  ended_ = true;
  if (poller_ != nullptr) poller_->remove(socket_.get());  // else a level-triggered hang-up would be reported for ever
  const std::lock_guard lock(mutex_);
  broken_ = true;
  outgoing_.clear();
  if (why_.empty()) why_ = std::move(why);
}

void StreamLink::read_available() {
  std::array<std::byte, 64 << 10> chunk;  // not initialised: most calls read little or nothing
  const auto count = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
  const int error = errno;
  if (count > 0) incoming_.insert(incoming_.end(), chunk.begin(), chunk.begin() + count);
  if (count == 0) mark_broken("");
  if (count < 0 && error != EAGAIN && error != EINTR) mark_broken(error == ECONNRESET ? "" : std::strerror(error));
}

std::optional<std::vector<std::byte>> StreamLink::receive() {
  for (;;) {
    const std::span<const std::byte> rest = std::span(incoming_).subspan(parsed_);
    if (rest.size() >= header_bytes) {
      base::ByteReader reader(rest);
      const std::size_t length = reader.get<std::uint32_t>();
      if (length > frame_limit) {
        incoming_.clear();
        parsed_ = 0;
        mark_broken(fmt::format("it sent a malformed frame of {} bytes", length));
        return std::nullopt;
      }
      if (reader.left() >= length) {
        const auto body = reader.get_raw(length);
        std::vector<std::byte> frame(body.begin(), body.end());
        parsed_ += header_bytes + length;
        return frame;
      }
    }
    incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<std::ptrdiff_t>(parsed_));
    parsed_ = 0;
    if (ended_) return std::nullopt;
    const std::size_t before = incoming_.size();
    read_available();
    if (incoming_.size() == before && !ended_) return std::nullopt;
  }
}

bool StreamLink::closed() const {
  // A partial frame behind the last whole one will never be completed.
  return ended_;
}

std::string StreamLink::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace rondo::bootstrap
