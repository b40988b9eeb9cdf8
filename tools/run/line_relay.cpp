#include "tools/run/line_relay.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rondo::tools {

void OutputSink::append(std::string_view text) {
  if (!broken_) queue_ += text;
}

void OutputSink::flush() {
  // A pipe that polls writable takes this much at once. The descriptor itself stays blocking: its open file is shared
  // with the shell that started the launcher.
  constexpr std::size_t piece = 4096;
  while (!queue_.empty()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0 || (ready.revents & (POLLOUT | POLLERR | POLLHUP | POLLNVAL)) == 0) break;
    const ssize_t n = write(fd_, queue_.data() + written_, std::min(piece, queue_.size() - written_));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (n < 0) {
      broken_ = true;
      queue_.clear();
      written_ = 0;
      return;
    }
    written_ += static_cast<std::size_t>(n);
    if (written_ == queue_.size()) {
      queue_.clear();
      written_ = 0;
    }
  }
  // Rarely, so that a long queue is not moved for every piece.
  if (written_ > congestion_bytes) {
    queue_.erase(0, written_);
    written_ = 0;
  }
}

void LineRelay::feed(std::string_view bytes) {
  for (;;) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    if (partial_.empty()) {
      pass(bytes.substr(0, end));
    } else {
      partial_ += bytes.substr(0, end);
      pass(partial_);
      partial_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  partial_ += bytes;
  if (partial_.size() > longest_line) finish();
}

void LineRelay::finish() {
  if (partial_.empty()) return;
  pass(partial_);
  partial_.clear();
}

void LineRelay::pass(std::string_view line) {
  sink_->append(prefix_);
  sink_->append(line);
  sink_->append("\n");
}

}  // namespace rondo::tools
