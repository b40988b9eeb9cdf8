// The FIFO of a connection: what every transport offers and the executor steps against, inline.
//
// A connection carries messages one way, from a producing lane to a consuming lane. Message m uses slot m mod slots.
// Each slot has a header line (64 bytes: a flag that is the message's number, a signature, the length, up to 48 bytes
// of payload) and `slot_bytes` of payload elsewhere. Sender: try_acquire, fill, publish. Receiver: try_peek, use,
// release. Counters run on for the life of the connection, across plans, so a stale flag or credit never matches.
//
// Memory order: publish() stores the number with release after the payload; try_peek() loads it with acquire. release()
// stores the consumed count with release after the last read; try_acquire() loads it with acquire. Nothing else is
// shared.
//
// The memory belongs to the transport. In shm both ends look at the same lines. Transports with wires (tcp, sim) give
// each end local lines and a Pump that moves messages between them; the executor calls pump->progress() while it waits
// and pump->flush() after publishing.
//
// Threads: each end has one owner at a time (the operation that steps it); ownership moves only with the operation.
#pragma once

#include "base/doorbell.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rondo::transport {

inline constexpr std::size_t inline_bytes = 48;

enum class PayloadKind : std::uint8_t {
  inlined,    // in the header line
  slot,       // in the slot
  reference,  // in the sender's window: payload holds a WindowReference; the credit says that it has been read
};

// Where a peer finds the data of a Direct message: window `window` of the sender, from `offset` on.
struct WindowReference {
  std::uint64_t window;
  std::uint64_t offset;
};

struct alignas(64) SlotLine {
  std::byte payload[inline_bytes];
  std::uint32_t signature;            // of the operation the message belongs to
  std::uint32_t length_and_kind;      // bytes of the message << 2 | PayloadKind
  std::atomic<std::uint64_t> number;  // 1 + the message's index, once it is there
};
static_assert(sizeof(SlotLine) == 64);

struct alignas(64) CreditLine {
  std::atomic<std::uint64_t> consumed;  // messages the receiver has released
};

// Moves messages over a wire. progress() and flush() never block, are called by the end's owner, and throw rondo::Error
// when the wire is broken.
class Pump {
 public:
  Pump() = default;
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;
  virtual ~Pump() = default;
  virtual void flush() = 0;
  virtual void progress() = 0;
  // The owner is about to sleep: ring its bell once the wire has news. Cheap when already armed.
  virtual void arm() {}
  // True once everything published has left this process's memory for good (the owner may drop the end).
  virtual bool idle() const = 0;
};

#if defined(RONDO_PLANTED_RACE)  // by the test that ThreadSanitizer sees what this order is for
inline constexpr std::memory_order publish_order = std::memory_order_relaxed;
#else
inline constexpr std::memory_order publish_order = std::memory_order_release;
#endif

struct SendEnd {
  SlotLine* lines = nullptr;
  std::byte* data = nullptr;  // slots * slot_bytes
  CreditLine* credit = nullptr;
  std::uint32_t slots = 0;  // a power of two
  std::uint32_t slot_bytes = 0;
  std::uint64_t sent = 0;                      // messages published
  std::uint64_t consumed_seen = 0;             // last look at credit->consumed
  PayloadKind pending = PayloadKind::inlined;  // kind of the message that is being written
  base::DoorbellWord* peer_bell = nullptr;
  base::System* system = nullptr;
  Pump* pump = nullptr;
  int peer = -1;              // world rank
  bool maps_windows = false;  // the peer can read this rank's windows: references may be sent

  bool try_acquire() {
    if (sent - consumed_seen < slots) return true;
    consumed_seen = credit->consumed.load(std::memory_order_acquire);
    return sent - consumed_seen < slots;
  }
  // All messages have been released by the receiver (what a drain waits for).
  bool drained() {
    if (consumed_seen == sent) return true;
    consumed_seen = credit->consumed.load(std::memory_order_acquire);
    return consumed_seen == sent;
  }
  SlotLine& line() const { return lines[sent & (slots - 1)]; }
  std::byte* slot() const { return data + (sent & (slots - 1)) * slot_bytes; }
  // Publishes the acquired slot. The payload is already in line().payload or slot().
  void publish(std::uint32_t signature, std::size_t length, PayloadKind kind) {
    SlotLine& l = line();
    l.signature = signature;
    l.length_and_kind = static_cast<std::uint32_t>(length << 2) | static_cast<std::uint32_t>(kind);
    ++sent;
    l.number.store(sent, publish_order);
  }
  // Tells the receiver, after one or more publish().
  void flush() {
    if (pump != nullptr) pump->flush();
    else base::ring(*peer_bell, *system);
  }
};

struct ReceiveEnd {
  SlotLine* lines = nullptr;
  std::byte* data = nullptr;
  CreditLine* credit = nullptr;
  std::uint32_t slots = 0;
  std::uint32_t slot_bytes = 0;
  std::uint64_t received = 0;  // messages released
  base::DoorbellWord* peer_bell = nullptr;
  base::System* system = nullptr;
  Pump* pump = nullptr;
  int peer = -1;

  // The oldest unreleased message, or null.
  const SlotLine* try_peek() const {
    const SlotLine& l = lines[received & (slots - 1)];
    return l.number.load(std::memory_order_acquire) == received + 1 ? &l : nullptr;
  }
  // Payload of the peeked message when its kind is `slot`.
  const std::byte* slot() const { return data + (received & (slots - 1)) * slot_bytes; }
  static std::size_t length(const SlotLine& l) { return l.length_and_kind >> 2; }
  static PayloadKind kind(const SlotLine& l) { return static_cast<PayloadKind>(l.length_and_kind & 3U); }
  static WindowReference reference(const SlotLine& l) {
    WindowReference r;
    std::memcpy(&r, l.payload, sizeof r);
    return r;
  }
  // Gives the slot back.
  void release() {
    ++received;
    credit->consumed.store(received, std::memory_order_release);
  }
  void flush() {
    if (pump != nullptr) pump->flush();
    else base::ring(*peer_bell, *system);
  }
};

}  // namespace rondo::transport
