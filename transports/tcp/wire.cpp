#include "transports/tcp/wire.hpp"

#include <rondo/error.hpp>

#include "base/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rondo::transport::tcp {
namespace {

constexpr std::uint32_t address_version = 1;

template <class T>
std::byte* store(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) *to++ = static_cast<std::byte>((value >> (8 * i)) & 0xff);
  return to;
}
template <class T>
T load(const std::byte* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(std::to_integer<T>(from[i]) << (8 * i));
  return value;
}

}  // namespace

std::vector<std::byte> encode_address(std::span<const base::SocketAddress> listening) {
  base::ByteWriter writer;
  writer.put(address_version).put(static_cast<std::uint32_t>(listening.size()));
  for (const auto& address : listening) writer.put_bytes(address.address_bytes()).put(address.port());
  return writer.take();
}

std::vector<base::SocketAddress> decode_address(std::span<const std::byte> bytes, int rank) {
  base::ByteReader reader(bytes);
  if (const auto version = reader.get<std::uint32_t>(); version != address_version) {
    throw Error(ErrorCode::transport,
                fmt::format("rank {} speaks version {} of the tcp transport, this rank version {}", rank, version,
                            address_version),
                "use the same library on all ranks", rank);
  }
  std::vector<base::SocketAddress> addresses;
  const std::size_t count = reader.get_count(4 + 4 + 2);
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = reader.get_bytes();
    if (address.size() != 4 && address.size() != 16) {
      throw Error(ErrorCode::transport,
                  fmt::format("rank {} says that it listens at an address of {} bytes; 4 and 16 are possible", rank,
                              address.size()),
                  {}, rank);
    }
    addresses.push_back(base::SocketAddress::from_bytes(address, reader.get<std::uint16_t>()));
  }
  reader.expect_end();
  return addresses;
}

std::vector<std::byte> encode(const Hello& hello) {
  base::ByteWriter writer;
  writer.put(hello.kind);
  if (hello.kind == HelloKind::data) {
    writer.put(hello.key.context).put(hello.key.source).put(hello.key.destination).put(hello.key.tag);
    writer.put(hello.layout.slots).put(hello.layout.slot_bytes);
  }
  return writer.take();
}

Hello decode_hello(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  Hello hello;
  hello.kind = reader.get<HelloKind>();
  if (hello.kind == HelloKind::data) {
    hello.key.context = reader.get<std::uint64_t>();
    hello.key.source = reader.get<std::int32_t>();
    hello.key.destination = reader.get<std::int32_t>();
    hello.key.tag = reader.get<std::uint32_t>();
    hello.layout.slots = reader.get<std::uint32_t>();
    hello.layout.slot_bytes = reader.get<std::uint32_t>();
    if (!hello.layout.valid()) {
      throw Error(ErrorCode::transport, fmt::format("a peer asks for a connection of {} slots of {} bytes",
                                                    hello.layout.slots, hello.layout.slot_bytes));
    }
  } else if (hello.kind != HelloKind::probe) {
    throw Error(ErrorCode::transport,
                fmt::format("a peer asks for a connection of unknown kind {}", static_cast<int>(hello.kind)));
  }
  reader.expect_end();
  return hello;
}

std::array<std::byte, probe_bytes> probe_pattern() {
  std::array<std::byte, probe_bytes> pattern;
  std::uint32_t x = 0x9e3779b9;  // xorshift: no period within the pattern
  for (std::byte& b : pattern) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    b = static_cast<std::byte>(x & 0xff);
  }
  return pattern;
}

WireHeader encode(const MessageHeader& header) {
  WireHeader bytes;
  store(store(store(bytes.data(), header.signature), header.length_and_kind), header.number);
  return bytes;
}

MessageHeader decode_header(const std::byte* bytes, std::uint64_t expected, std::size_t slot_bytes, int peer) {
  const MessageHeader header{load<std::uint32_t>(bytes), load<std::uint32_t>(bytes + 4),
                             load<std::uint64_t>(bytes + 8)};
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::transport, fmt::format("rank {} sent a malformed message over tcp: {}", peer, what), {},
                peer);
  };
  if (header.number != expected) refuse(fmt::format("number {} where {} comes next", header.number, expected));
  if (header.kind() == PayloadKind::inlined) {
    if (header.length() > inline_bytes) {
      refuse(fmt::format("{} bytes inlined, at most {} are", header.length(), inline_bytes));
    }
  } else if (header.kind() != PayloadKind::slot) {
    refuse(fmt::format("payload kind {}, which cannot cross a wire", static_cast<int>(header.kind())));
  } else if (header.length() > slot_bytes) {
    refuse(fmt::format("{} bytes, its slots have {}", header.length(), slot_bytes));
  }
  return header;
}

}  // namespace rondo::transport::tcp
