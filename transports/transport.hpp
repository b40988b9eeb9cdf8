// What a transport is: a way to open FIFO ends to peers and, where peers share memory, to map their windows.
//
// Life: constructed -> address() (bytes that go into the table all ranks exchange while joining) -> start(table) -> any
// number of opens -> close_context() when a communicator ends -> destruction. Ranks here are world ranks.
//
// Threads: service() is called by the engine's service thread alone, everything else by any thread (implementations
// lock). open_send and try_open_receive never block and return ends that live until close_context(). Errors are
// rondo::Error.
#pragma once

#include "transports/fifo.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::transport {

// Names a connection: context is the communicator's id, the same on all ranks.
struct ConnectionKey {
  std::uint64_t context = 0;
  std::int32_t source = 0;
  std::int32_t destination = 0;
  std::uint32_t tag = 0;
  bool operator==(const ConnectionKey&) const = default;
};

// Whether a peer can be reached, and why (not); `why` is shown at INFO and in errors.
struct Reach {
  bool reachable = false;
  std::string why;
};

// This rank's window memory and the peers' views of it. data is page-aligned.
struct WindowMapping {
  std::uint64_t id = 0;  // unique on the owning rank
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  WindowMapping() = default;
  WindowMapping(const WindowMapping&) = delete;
  WindowMapping& operator=(const WindowMapping&) = delete;
  virtual ~WindowMapping() = default;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;  // "self", "shm", "tcp", "sim"
  // Ends have a pump: a look at them is a system call, and a message costs a network's latency.
  virtual bool is_wire() const { return false; }
  virtual std::vector<std::byte> address() = 0;
  // table[r] is what rank r's address() returned; empty where that rank has no such transport.
  virtual void start(int rank, std::span<const std::vector<std::byte>> table) = 0;
  // Tries the path and verifies it with a data pattern; at most a few seconds. Both sides may probe at once.
  virtual Reach probe(int peer) = 0;

  virtual SendEnd* open_send(const ConnectionKey& key) = 0;
  // Null while the sender has not opened its end yet; cheap enough to poll.
  virtual ReceiveEnd* try_open_receive(const ConnectionKey& key) = 0;
  // Drops all connections of a communicator; none of its operations may be running.
  virtual void close_context(std::uint64_t context) = 0;

  // Windows; the default has none. allocate: local. map_peer: this process's view of a peer's window, mapped on first
  // use and cached; null when the peer can't be mapped.
  virtual std::shared_ptr<WindowMapping> allocate_window(std::size_t) { return nullptr; }
  virtual const std::byte* map_peer_window(int, std::uint64_t) { return nullptr; }

  // Descriptors' events, handshakes of incoming connections.
  virtual void service() {}
};

}  // namespace rondo::transport
