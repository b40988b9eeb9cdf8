// TcpReceiver: the receiving end of a connection and the pump behind it.
//
// Made from a socket whose handshake is done. Reads straight into the next free slot, and ahead into a small buffer, so
// that one system call brings a small message whole, or several. Stops when all slots are taken: the full socket then
// holds the sender back.
//
// Threads: everything belongs to the end's owner, but for on_wire(), which only rings the rank's bell.
#pragma once

#include "base/socket.hpp"
#include "transports/tcp/sender.hpp"
#include "transports/tcp/wire.hpp"
#include "transports/tcp/wire_events.hpp"

#include <array>
#include <atomic>
#include <memory>

namespace rondo::transport::tcp {

class TcpReceiver final : public Pump, public WireEvents::Handler, public std::enable_shared_from_this<TcpReceiver> {
 public:
  static std::shared_ptr<TcpReceiver> create(const Surroundings& around, const ConnectionKey& key,
                                             const FifoLayout& layout, base::FileDescriptor fd);
  TcpReceiver(const Surroundings& around, const ConnectionKey& key, const FifoLayout& layout, base::FileDescriptor fd);
  ~TcpReceiver() override;

  ReceiveEnd& end() { return end_; }

  // Releasing a slot tells the wire nothing.
  void flush() override {}
  void progress() override;
  bool idle() const override { return true; }
  void arm() override;
  void on_wire() noexcept override;

 private:
  static constexpr std::size_t ahead_bytes = 8192;

  bool parse();
  void acknowledge();
  ssize_t receive(std::size_t direct);
  void begin_message();
  std::byte* destination();
  bool full() const;
  void ended(int error);

  const Surroundings around_;
  const ConnectionKey key_;
  LocalFifo fifo_;
  ReceiveEnd end_;
  base::FileDescriptor fd_;
  std::uint64_t token_ = 0;
  std::atomic<bool> armed_{false};

  std::uint64_t next_ = 0;          // index of the message that comes in
  std::uint64_t acknowledged_ = 0;  // messages that had come when the last acknowledgement was asked for
  bool in_message_ = false;
  MessageHeader header_;  // of that message, while in_message_
  std::size_t got_ = 0;   // bytes of its payload
  bool at_end_ = false;   // the socket has brought all it will
  int end_error_ = 0;     // errno, or 0 for an orderly end
  std::array<std::byte, ahead_bytes> ahead_;
  std::size_t ahead_first_ = 0;
  std::size_t ahead_last_ = 0;
};

}  // namespace rondo::transport::tcp
