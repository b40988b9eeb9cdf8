// A peer's shared memory: what its first bytes may hold, its header and its directory of connections.
#include "harness/target.hpp"
#include "transports/shm/arena.hpp"

#include <cstring>

namespace rondo::fuzz {
namespace {

using namespace transport;

constexpr std::size_t arena_bytes = 64 << 10;
constexpr int peer = 2;
constexpr Nonce nonce = {1, 2, 3, 4};
constexpr ConnectionKey keys[] = {{5, peer, 0, 0}, {5, peer, 0, 1}, {6, peer, 3, 0}};

template <class T>
void put_at(Bytes& bytes, std::size_t offset, const T& value) {
  std::memcpy(&bytes[offset], &value, sizeof value);
}

// A directory whose every entry is the same connection.
Bytes example(std::uint64_t entries, const FifoLayout& layout, std::uint64_t offset) {
  Bytes bytes(sizeof(ArenaHeader) + entries * sizeof(DirectoryEntry));
  put_at(bytes, offsetof(ArenaHeader, magic), ArenaHeader::expected_magic);
  put_at(bytes, offsetof(ArenaHeader, version), ArenaHeader::expected_version);
  put_at(bytes, offsetof(ArenaHeader, rank), std::int32_t{peer});
  put_at(bytes, offsetof(ArenaHeader, bytes), std::uint64_t{arena_bytes});
  put_at(bytes, offsetof(ArenaHeader, directory_entries), entries);
  put_at(bytes, offsetof(ArenaHeader, nonce), nonce);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = sizeof(ArenaHeader) + i * sizeof(DirectoryEntry);
    put_at(bytes, at + offsetof(DirectoryEntry, state), std::uint64_t{2 + i});
    put_at(bytes, at + offsetof(DirectoryEntry, context), keys[0].context);
    put_at(bytes, at + offsetof(DirectoryEntry, destination), keys[0].destination);
    put_at(bytes, at + offsetof(DirectoryEntry, tag), keys[0].tag);
    put_at(bytes, at + offsetof(DirectoryEntry, offset), offset);
    put_at(bytes, at + offsetof(DirectoryEntry, slots), layout.slots);
    put_at(bytes, at + offsetof(DirectoryEntry, slot_bytes), layout.slot_bytes);
  }
  return bytes;
}

}  // namespace

std::vector<Bytes> seeds() {
  return {example(1, {2, 4096}, 4096), example(4, {4, 64}, 8192), example(2, {1, 128}, 57344)};
}

bool parse(std::span<const std::byte> input) {
  static const auto memory = std::make_shared<base::SharedMemory>(base::SharedMemory::create("fuzz", arena_bytes));
  std::memset(memory->data(), 0, arena_bytes);
  if (!input.empty()) std::memcpy(memory->data(), input.data(), std::min(input.size(), arena_bytes / 2));
  return accepts(
      [&] {
        const ArenaView view(memory, peer, nonce);
        for (const ConnectionKey& key : keys) {
          const auto hit = view.find(key);
          if (!hit) continue;
          require(hit->layout.valid(), "a connection has a valid geometry");
          require(hit->offset <= arena_bytes && hit->layout.bytes() <= arena_bytes - hit->offset,
                  "a connection lies within the memory");
          const Fifo fifo = view.fifo(hit->offset, hit->layout);
          // What a receiver touches first.
          static_cast<void>(fifo.lines[hit->layout.slots - 1].number.load());
          static_cast<void>(fifo.credit->consumed.load());
          require(reinterpret_cast<const std::byte*>(fifo.lines) >= reinterpret_cast<const std::byte*>(hit->entry + 1),
                  "a connection lies behind its directory entry");
          ArenaView::drop(*hit);
          const auto again = view.find(key);
          require(!again || again->generation != hit->generation, "what was dropped is not found again");
        }
      },
      {ErrorCode::transport});
}

}  // namespace rondo::fuzz
