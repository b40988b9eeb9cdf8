// StreamLink: a ControlLink over a connected stream socket that has passed the handshake. A frame is a 32-bit length
// and the bytes.
//
// Until attach() the owner drives it: receive() reads from the socket, flush() writes, fd() can be polled. After
// attach() the poller wakes the service thread, which calls receive(), and send() finishes through the poller.
#pragma once

#include "base/poller.hpp"
#include "base/socket.hpp"
#include "bootstrap/control_link.hpp"

#include <sys/types.h>

#include <deque>
#include <mutex>

namespace rondo::bootstrap {

class StreamLink final : public ControlLink {
 public:
  static constexpr std::size_t frame_limit = std::size_t{64} << 20;
  // What may wait for a neighbour that does not read; then the link counts as broken.
  static constexpr std::size_t backlog_limit = std::size_t{256} << 20;

  explicit StreamLink(base::FileDescriptor socket);
  // Writes what is pending for at most 200 ms, then closes. In a forked child it only closes: shutting down would end
  // the parent's connection.
  ~StreamLink() override;

  void send(std::span<const std::byte> frame) override;
  std::optional<std::vector<std::byte>> receive() override;
  bool closed() const override;
  std::string why() const override;

  // The poller must outlive the link.
  void attach(base::Poller& poller);
  int fd() const { return socket_.get(); }
  // Writes what the socket takes; whether nothing is left.
  bool flush();

 private:
  bool flush_locked();
  void read_available();
  void mark_broken(std::string why);

  base::FileDescriptor socket_;
  pid_t creator_;
  base::Poller* poller_ = nullptr;

  mutable std::mutex mutex_;  // what follows, down to the blank line
  std::deque<std::vector<std::byte>> outgoing_;
  std::size_t outgoing_bytes_ = 0;
  std::size_t sent_of_first_ = 0;
  bool broken_ = false;  // nothing is sent any more
  std::string why_;

  std::vector<std::byte> incoming_;  // the receiving thread's
  std::size_t parsed_ = 0;
  bool ended_ = false;
};

}  // namespace rondo::bootstrap
