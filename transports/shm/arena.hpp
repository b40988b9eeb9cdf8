// Arena: the one shared-memory file of a rank. It holds the rank's doorbell, a directory of the connections on which
// the rank sends, and their FIFOs. Peers map it whole and poll the directory without locks.
//
//   | header | directory: open-addressing table keyed by (context, destination, tag) | FIFOs ...................... |
//
// A directory entry is written by the owner under its lock and published by a release store of its state; every field
// is atomic, and a reader takes the state again afterwards, so a torn look counts as a miss. FIFO memory is bumped off,
// and reused by size once a context closes. The file is large and sparse: pages exist when touched.
//
// OwnArena: thread-safe (the transport locks it). ArenaView: const and lock-free; it trusts nothing that it reads.
#pragma once

#include "base/doorbell.hpp"
#include "base/memory_map.hpp"
#include "transports/fifo_layout.hpp"
#include "transports/transport.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace rondo::transport {

using Nonce = std::array<std::uint64_t, 4>;

struct ArenaHeader {
  static constexpr std::uint64_t expected_magic = 0x616e6572'646e6f72;  // "rondaren"
  static constexpr std::uint32_t expected_version = 1;
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t rank;
  std::uint64_t bytes;
  std::uint64_t directory_entries;  // a power of two
  Nonce nonce;                      // as in the rank's address: proof that this is the file that the address means
  base::DoorbellWord bell;
};

struct alignas(64) DirectoryEntry {
  enum State : std::uint64_t { empty = 0, deleted = 1 };  // from 2 on: the generation of a live connection
  std::atomic<std::uint64_t> state;
  std::atomic<std::uint64_t> context;
  std::atomic<std::int32_t> destination;
  std::atomic<std::uint32_t> tag;
  std::atomic<std::uint64_t> offset;  // of the FIFO in the arena
  std::atomic<std::uint32_t> slots;
  std::atomic<std::uint32_t> slot_bytes;
  // The newest generation that its receiver has dropped: it must not find that one again when it reopens the key.
  std::atomic<std::uint64_t> dropped;
};
static_assert(sizeof(DirectoryEntry) == 64);

// What a receiver needs of an entry that it found valid.
struct DirectoryHit {
  DirectoryEntry* entry = nullptr;
  std::uint64_t generation = 0;
  std::uint64_t offset = 0;
  FifoLayout layout;
};

// A mapped arena, own or a peer's. Throws Error(transport) if the header isn't what rank `rank` announced.
class ArenaView {
 public:
  ArenaView(std::shared_ptr<base::SharedMemory> memory, int rank, const Nonce& nonce);

  base::DoorbellWord& bell() const { return header_->bell; }
  Fifo fifo(std::uint64_t offset, const FifoLayout& layout) const;
  // The live connection of the key, or nothing yet. Throws Error(transport) when a published entry points outside.
  std::optional<DirectoryHit> find(const ConnectionKey& key) const;
  // The receiver won't use that generation any more.
  static void drop(const DirectoryHit& hit);

 private:
  friend class OwnArena;
  DirectoryEntry* directory() const;
  std::uint64_t fifo_start() const;

  std::shared_ptr<base::SharedMemory> memory_;
  ArenaHeader* header_;
  int rank_;
  std::uint64_t entries_;  // checked once; what the header says later doesn't matter
};

class OwnArena {
 public:
  // Creates the file. ranks scales it.
  OwnArena(int rank, int ranks, std::size_t fifo_bytes, bool ringer_fences);

  const ArenaView& view() const { return *view_; }
  const std::shared_ptr<base::SharedMemory>& memory() const { return memory_; }
  const Nonce& nonce() const { return nonce_; }

  // The FIFO of a new connection, published in the directory with empty lines and zero credit. Throws Error(transport)
  // when the arena or its directory is full.
  Fifo open(const ConnectionKey& key, const FifoLayout& layout);
  // Unpublishes the connections of a context and keeps their memory for others of their sizes.
  void close_context(std::uint64_t context);

 private:
  struct Place {
    DirectoryEntry* entry;
    std::uint64_t offset;
    std::size_t bytes;
  };
  std::uint64_t allocate(std::size_t bytes);
  DirectoryEntry& claim(const ConnectionKey& key);

  std::shared_ptr<base::SharedMemory> memory_;
  Nonce nonce_{};
  std::optional<ArenaView> view_;
  std::uint64_t next_offset_ = 0;
  std::uint64_t next_generation_ = 2;
  std::size_t live_ = 0;
  std::multimap<std::uint64_t, Place> places_;              // by context
  std::map<std::size_t, std::vector<std::uint64_t>> free_;  // by size
};

}  // namespace rondo::transport
