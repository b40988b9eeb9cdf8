#include "transports/shm/arena.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>
#include <utility>

namespace rondo::transport {
namespace {

// A multiplicative mix (the finaliser of SplitMix64) over the key; both sides must agree on it.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}
std::uint64_t hash(const ConnectionKey& key) {
  const std::uint64_t place = std::uint64_t{static_cast<std::uint32_t>(key.destination)} << 32 | key.tag;
  return mix(mix(key.context + 0x9e3779b97f4a7c15U) ^ place);
}

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

constexpr std::uint64_t directory_offset = round_up(sizeof(ArenaHeader), 64);

std::uint64_t entries_for(int ranks) {
  return std::bit_ceil(std::max<std::uint64_t>(16384, static_cast<std::uint64_t>(ranks) * 256));
}

// Virtual bytes; generous, for pages exist only when touched.
std::uint64_t arena_bytes(int ranks, std::size_t fifo_bytes) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  const std::uint64_t wanted = static_cast<std::uint64_t>(ranks) * 64 * fifo_bytes;
  return std::clamp(wanted, 4 * gib, 64 * gib);
}

}  // namespace

ArenaView::ArenaView(std::shared_ptr<base::SharedMemory> memory, int rank, const Nonce& nonce)
    : memory_(std::move(memory)), header_(reinterpret_cast<ArenaHeader*>(memory_->data())), rank_(rank), entries_(0) {
  const std::size_t bytes = memory_->bytes();
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::transport, fmt::format("the shared memory of rank {} is not valid: {}", rank, what), {},
                rank);
  };
  if (bytes < sizeof(ArenaHeader)) refuse(fmt::format("{} bytes, a header alone has {}", bytes, sizeof(ArenaHeader)));
  if (header_->magic != ArenaHeader::expected_magic) refuse(fmt::format("magic {:#x}", header_->magic));
  if (header_->version != ArenaHeader::expected_version) {
    refuse(fmt::format("layout version {}, this library has {}", header_->version, ArenaHeader::expected_version));
  }
  if (header_->rank != rank) refuse(fmt::format("it belongs to rank {}", header_->rank));
  if (header_->bytes != bytes) refuse(fmt::format("its header says {} bytes, it has {}", header_->bytes, bytes));
  if (header_->nonce != nonce) refuse("its data pattern differs from the one in the rank's address");
  const std::uint64_t entries = header_->directory_entries;
  if (!std::has_single_bit(entries) || entries > (bytes - directory_offset) / sizeof(DirectoryEntry)) {
    refuse(fmt::format("a directory of {} entries in {} bytes", entries, bytes));
  }
  entries_ = entries;
}

DirectoryEntry* ArenaView::directory() const {
  return reinterpret_cast<DirectoryEntry*>(memory_->data() + directory_offset);
}

std::uint64_t ArenaView::fifo_start() const {
  return round_up(directory_offset + entries_ * sizeof(DirectoryEntry), FifoLayout::data_alignment);
}

Fifo ArenaView::fifo(std::uint64_t offset, const FifoLayout& layout) const {
  return fifo_at(memory_->data() + offset, layout);
}

std::optional<DirectoryHit> ArenaView::find(const ConnectionKey& key) const {
  const std::uint64_t mask = entries_ - 1;
  std::uint64_t at = hash(key) & mask;
  for (std::uint64_t i = 0; i < entries_; ++i, at = (at + 1) & mask) {
    DirectoryEntry& entry = directory()[at];
    // Matches the release store in OwnArena::open.
    const std::uint64_t state = entry.state.load(std::memory_order_acquire);
    if (state == DirectoryEntry::empty) return std::nullopt;
    if (state == DirectoryEntry::deleted) continue;
    // Acquire, so that the second look at the state stays behind these.
    if (entry.context.load(std::memory_order_acquire) != key.context ||
        entry.destination.load(std::memory_order_acquire) != key.destination ||
        entry.tag.load(std::memory_order_acquire) != key.tag) {
      continue;
    }
    const std::uint64_t offset = entry.offset.load(std::memory_order_acquire);
    const FifoLayout layout{entry.slots.load(std::memory_order_acquire),
                            entry.slot_bytes.load(std::memory_order_acquire)};
    const std::uint64_t dropped = entry.dropped.load(std::memory_order_acquire);
    if (entry.state.load(std::memory_order_relaxed) != state || dropped >= state) return std::nullopt;
    const std::size_t bytes = memory_->bytes();
    if (!layout.valid() || offset % FifoLayout::data_alignment != 0 || offset < fifo_start() || offset > bytes ||
        layout.bytes() > bytes - offset) {
      throw Error(
          ErrorCode::transport,
          fmt::format("the connection directory of rank {} is not valid: {} slots of {} bytes at offset {} of {}",
                      rank_, layout.slots, layout.slot_bytes, offset, bytes),
          {}, rank_);
    }
    return DirectoryHit{&entry, state, offset, layout};
  }
  return std::nullopt;
}

void ArenaView::drop(const DirectoryHit& hit) {
  std::uint64_t seen = hit.entry->dropped.load(std::memory_order_relaxed);
  while (seen < hit.generation && !hit.entry->dropped.compare_exchange_weak(
                                      seen, hit.generation, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

OwnArena::OwnArena(int rank, int ranks, std::size_t fifo_bytes, bool ringer_fences)
    : memory_(std::make_shared<base::SharedMemory>(
          base::SharedMemory::create("rondo-arena", arena_bytes(ranks, fifo_bytes)))) {
  if (::getrandom(nonce_.data(), sizeof nonce_, 0) != static_cast<ssize_t>(sizeof nonce_)) {
    throw Error(ErrorCode::system, "getrandom failed: " + std::generic_category().message(errno));
  }
  auto* header = new (memory_->data()) ArenaHeader{};
  header->magic = ArenaHeader::expected_magic;
  header->version = ArenaHeader::expected_version;
  header->rank = rank;
  header->bytes = memory_->bytes();
  header->directory_entries = entries_for(ranks);
  header->nonce = nonce_;
  header->bell.ringer_fences.store(ringer_fences ? 1 : 0, std::memory_order_relaxed);
  view_.emplace(memory_, rank, nonce_);
  next_offset_ = view_->fifo_start();
}

std::uint64_t OwnArena::allocate(std::size_t bytes) {
  if (auto& list = free_[bytes]; !list.empty()) {
    const std::uint64_t offset = list.back();
    list.pop_back();
    return offset;
  }
  if (bytes > memory_->bytes() - next_offset_) {
    throw Error(ErrorCode::transport,
                fmt::format("{} connections fill the {} bytes of shared memory of this rank; {} more bytes do not fit",
                            live_, memory_->bytes(), bytes),
                "make connections smaller with RONDO_FIFO_BYTES, or close communicators that are not needed");
  }
  return std::exchange(next_offset_, next_offset_ + bytes);
}

DirectoryEntry& OwnArena::claim(const ConnectionKey& key) {
  const std::uint64_t mask = view_->entries_ - 1;
  // A quarter stays empty, so that looking for what isn't there ends soon.
  if (live_ >= view_->entries_ / 4 * 3) {
    throw Error(ErrorCode::transport, fmt::format("{} connections fill the directory of this rank", live_),
                "close communicators that are not needed");
  }
  std::uint64_t at = hash(key) & mask;
  while (view_->directory()[at].state.load(std::memory_order_relaxed) > DirectoryEntry::deleted) at = (at + 1) & mask;
  return view_->directory()[at];
}

Fifo OwnArena::open(const ConnectionKey& key, const FifoLayout& layout) {
  DirectoryEntry& entry = claim(key);
  const std::uint64_t offset = allocate(layout.bytes());
  const Fifo fifo = view_->fifo(offset, layout);
  // Acquire: the last life's reads of this memory come before this life's writes.
  static_cast<void>(fifo.credit->consumed.load(std::memory_order_acquire));
  fifo.credit->consumed.store(0, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < layout.slots; ++i) fifo.lines[i].number.store(0, std::memory_order_relaxed);
  // Release, so that whoever sees one of these sees the state that close_context() left before.
  entry.context.store(key.context, std::memory_order_release);
  entry.destination.store(key.destination, std::memory_order_release);
  entry.tag.store(key.tag, std::memory_order_release);
  entry.offset.store(offset, std::memory_order_release);
  entry.slots.store(layout.slots, std::memory_order_release);
  entry.slot_bytes.store(layout.slot_bytes, std::memory_order_release);
  entry.state.store(next_generation_++, std::memory_order_release);
  places_.emplace(key.context, Place{&entry, offset, layout.bytes()});
  ++live_;
  return fifo;
}

void OwnArena::close_context(std::uint64_t context) {
  const auto [first, last] = places_.equal_range(context);
  const std::uint64_t mask = view_->entries_ - 1;
  DirectoryEntry* const directory = view_->directory();
  for (auto i = first; i != last; ++i) {
    const Place& place = i->second;
    place.entry->state.store(DirectoryEntry::deleted, std::memory_order_release);
    free_[place.bytes].push_back(place.offset);
    --live_;
    // Deleted entries that no longer lie on the way to another one become empty again: searches stay short.
    auto at = static_cast<std::uint64_t>(place.entry - directory);
    if (directory[(at + 1) & mask].state.load(std::memory_order_relaxed) != DirectoryEntry::empty) continue;
    while (directory[at].state.load(std::memory_order_relaxed) == DirectoryEntry::deleted) {
      directory[at].state.store(DirectoryEntry::empty, std::memory_order_release);
      at = (at - 1) & mask;
    }
  }
  places_.erase(first, last);
}

}  // namespace rondo::transport
