// TcpSender: the sending end of a connection and the pump behind it.
//
// Made at once, connected in the background: it tries the peer's addresses in turn, proves the key, names its
// connection in the hello, then streams what is published. credit->consumed counts the messages that the kernel has
// taken whole.
//
// Threads: flush(), progress(), arm() and the end belong to the end's owner; on_wire() runs on the service thread,
// which goes on with what flush() could not finish, so that an owner may leave. A mutex orders the two. An error on
// either is kept, and thrown by the owner's next flush() or progress().
#pragma once

#include <rondo/error.hpp>

#include "base/socket.hpp"
#include "bootstrap/handshake.hpp"
#include "transports/tcp/wire.hpp"
#include "transports/tcp/wire_events.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace rondo::transport::tcp {

// What the connections of one rank share.
struct Surroundings {
  base::System& system;
  base::DoorbellWord& bell;  // this rank's own
  WireEvents& events;
  const bootstrap::Key& key;
  int rank = 0;
};

class TcpSender final : public Pump, public WireEvents::Handler, public std::enable_shared_from_this<TcpSender> {
 public:
  // Trying one address ends after this long.
  static constexpr base::Nanoseconds address_deadline = 5'000'000'000;

  // `addresses`: the peer's, best first.
  TcpSender(const Surroundings& around, const ConnectionKey& key, const FifoLayout& layout,
            std::vector<base::SocketAddress> addresses);
  ~TcpSender() override;

  SendEnd& end() { return end_; }

  void flush() override;
  void progress() override;
  bool idle() const override;
  void arm() override;
  void on_wire() noexcept override;

 private:
  enum class State : std::uint8_t { starting, connecting, proving, streaming };

  void advance();
  bool step();
  void start_next();
  void fail_address(const std::string& why);
  void disconnect() noexcept;
  bool stream();
  bool published(std::uint64_t message) const;
  void arm_wire();

  const Surroundings around_;
  const ConnectionKey key_;
  LocalFifo fifo_;
  SendEnd end_;
  std::atomic<bool> armed_{false};
  std::atomic<bool> streaming_{false};  // and not broken: without something published, progress() needn't look

  // Guarded by mutex_.
  std::mutex mutex_;
  State state_ = State::starting;
  std::vector<base::SocketAddress> addresses_;
  std::size_t next_address_ = 0;
  std::string failures_;
  base::Nanoseconds try_deadline_ = 0;
  base::FileDescriptor fd_;
  std::uint64_t token_ = 0;
  std::optional<bootstrap::Handshake> handshake_;
  bool wants_read_ = false;   // the handshake's next step needs bytes, not room
  bool armed_reads_ = false;  // what armed_ was armed for
  std::uint64_t next_ = 0;    // index of the message to go out next
  std::size_t offset_ = 0;    // bytes of it (header included) that are out
  std::optional<Error> broken_;
};

}  // namespace rondo::transport::tcp
