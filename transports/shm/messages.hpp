// What ranks tell each other about shared memory: a rank's address, and which memory a client asks for. As bytes.
//
// Values and pure functions. Decoders throw Error(transport) on malformed bytes.
#pragma once

#include "transports/shm/arena.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rondo::transport {

struct ShmAddress {
  Nonce nonce{};            // of the rank's arena
  std::string socket_name;  // of its descriptor server
};
std::vector<std::byte> encode(const ShmAddress& address);
// `rank`: whose address it is, for errors.
ShmAddress decode_shm_address(std::span<const std::byte> bytes, int rank);

enum class MemoryKind : std::uint8_t { arena = 1, window = 2 };

// The hello of a client of a descriptor server. The kind may be one that this version doesn't know.
struct MemoryRequest {
  MemoryKind kind = MemoryKind::arena;
  std::uint64_t id = 0;  // windows only
};
std::vector<std::byte> encode(const MemoryRequest& request);
MemoryRequest decode_memory_request(std::span<const std::byte> bytes);

}  // namespace rondo::transport
