// What programs print, on its way to the launcher's own streams: whole lines, each with its rank in front.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rondo::tools {

// One of the launcher's streams. Never blocks: what does not fit waits in a queue. The descriptor is not owned.
class OutputSink {
 public:
  explicit OutputSink(int fd) : fd_(fd) {}
  void append(std::string_view text);
  // Writes as much as goes without blocking.
  void flush();
  int fd() const { return fd_; }
  bool pending() const { return !queue_.empty(); }
  // So much waits that sources should be left unread for now.
  bool congested() const { return queue_.size() > congestion_bytes; }
  // The reader has gone; what is appended is dropped.
  bool broken() const { return broken_; }

 private:
  static constexpr std::size_t congestion_bytes = std::size_t{1} << 20;
  int fd_;
  bool broken_ = false;
  std::string queue_;
  std::size_t written_ = 0;  // bytes of the queue that are out already
};

// Cuts one stream of one program into lines. A line longer than 1 MiB is passed on in pieces; the last line gets its
// line end if it has none.
class LineRelay {
 public:
  LineRelay(std::string prefix, OutputSink& sink) : prefix_(std::move(prefix)), sink_(&sink) {}
  void feed(std::string_view bytes);
  void finish();
  OutputSink& sink() const { return *sink_; }

 private:
  static constexpr std::size_t longest_line = std::size_t{1} << 20;
  void pass(std::string_view line);
  std::string prefix_;
  OutputSink* sink_;
  std::string partial_;
};

}  // namespace rondo::tools
