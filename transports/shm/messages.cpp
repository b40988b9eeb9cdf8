#include "transports/shm/messages.hpp"

#include <rondo/error.hpp>

#include "base/bytes.hpp"

#include <fmt/format.h>

namespace rondo::transport {
namespace {

constexpr std::uint32_t address_version = 1;

}  // namespace

std::vector<std::byte> encode(const ShmAddress& address) {
  base::ByteWriter writer;
  writer.put(address_version);
  for (const std::uint64_t word : address.nonce) writer.put(word);
  writer.put_string(address.socket_name);
  return writer.take();
}

ShmAddress decode_shm_address(std::span<const std::byte> bytes, int rank) {
  base::ByteReader reader(bytes);
  if (const auto version = reader.get<std::uint32_t>(); version != address_version) {
    throw Error(ErrorCode::transport,
                fmt::format("rank {} speaks version {} of the shared-memory transport, this rank version {}", rank,
                            version, address_version),
                "use the same library on all ranks", rank);
  }
  ShmAddress address;
  for (std::uint64_t& word : address.nonce) word = reader.get<std::uint64_t>();
  address.socket_name = reader.get_string();
  reader.expect_end();
  return address;
}

std::vector<std::byte> encode(const MemoryRequest& request) {
  base::ByteWriter writer;
  writer.put(request.kind).put(request.id);
  return writer.take();
}

MemoryRequest decode_memory_request(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  MemoryRequest request;
  request.kind = reader.get<MemoryKind>();
  request.id = reader.get<std::uint64_t>();
  reader.expect_end();
  return request;
}

}  // namespace rondo::transport
