// What the tcp transport tells its peers: where it listens, the hello of a connection, the header of a message.
// Little-endian.
//
// A connection carries one FIFO one way. Behind the handshake, whose authenticated hello names the connection and its
// geometry, there is nothing but messages: a header of 16 bytes, then the payload. Nothing flows back: a full socket is
// the credit.
#pragma once

#include "base/socket.hpp"
#include "transports/fifo_layout.hpp"
#include "transports/transport.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rondo::transport::tcp {

std::vector<std::byte> encode_address(std::span<const base::SocketAddress> listening);
// Throws Error(transport) naming `rank`, whose address it is.
std::vector<base::SocketAddress> decode_address(std::span<const std::byte> bytes, int rank);

enum class HelloKind : std::uint8_t { data = 1, probe = 2 };

struct Hello {
  HelloKind kind = HelloKind::data;
  ConnectionKey key;  // data only
  FifoLayout layout;  // data only; both ends use the sender's
};

std::vector<std::byte> encode(const Hello& hello);
// Throws Error(transport) on anything that isn't a hello with a valid geometry.
Hello decode_hello(std::span<const std::byte> bytes);

// The pattern that a probe sends and expects back.
inline constexpr std::size_t probe_bytes = 4096;
std::array<std::byte, probe_bytes> probe_pattern();

inline constexpr std::size_t header_bytes = 16;
using WireHeader = std::array<std::byte, header_bytes>;

struct MessageHeader {
  std::uint32_t signature = 0;
  std::uint32_t length_and_kind = 0;  // as in SlotLine
  std::uint64_t number = 0;           // as in SlotLine
  std::size_t length() const { return length_and_kind >> 2; }
  PayloadKind kind() const { return static_cast<PayloadKind>(length_and_kind & 3U); }
};

WireHeader encode(const MessageHeader& header);
// Throws Error(transport) naming `peer` unless the message is number `expected` and fits slots of `slot_bytes`.
MessageHeader decode_header(const std::byte* bytes, std::uint64_t expected, std::size_t slot_bytes, int peer);

}  // namespace rondo::transport::tcp
