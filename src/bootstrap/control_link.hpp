// ControlLink: one edge of the control tree, an ordered reliable channel of frames to one neighbour.
//
// Implementations: a TCP or Unix socket after the handshake (stream_link.hpp), and the simulation's. Used by the
// service thread alone, except send(), which any thread may call. Nothing blocks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rondo::bootstrap {

class ControlLink {
 public:
  ControlLink() = default;
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;
  virtual ~ControlLink() = default;
  // Queues a frame (at most 64 MiB); silently drops it once the link is closed.
  virtual void send(std::span<const std::byte> frame) = 0;
  // The next whole frame that has arrived.
  virtual std::optional<std::vector<std::byte>> receive() = 0;
  // The neighbour's end is gone (or sent something that is no frame: `why()` tells) and every frame has been received.
  virtual bool closed() const = 0;
  virtual std::string why() const = 0;
};

}  // namespace rondo::bootstrap
