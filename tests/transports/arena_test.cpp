// The shared-memory directory: what it finds, reuses, and refuses.
#include "transports/shm/arena.hpp"

#include <rondo/error.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

namespace rondo::transport {
namespace {

constexpr FifoLayout layout{8, 4096};
constexpr std::size_t fifo_bytes = 32768;

TEST(Arena, FindsWhatWasOpenedAndNothingElse) {
  OwnArena arena(3, 4, fifo_bytes, false);
  const ArenaView peer(arena.memory(), 3, arena.nonce());
  for (std::uint32_t tag = 0; tag < 500; ++tag) arena.open({9, 3, static_cast<int>(tag % 4), tag}, layout);
  std::set<std::uint64_t> offsets;
  for (std::uint32_t tag = 0; tag < 500; ++tag) {
    const auto hit = peer.find({9, 3, static_cast<int>(tag % 4), tag});
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->layout.slots, 8U);
    EXPECT_EQ(hit->layout.slot_bytes, 4096U);
    EXPECT_TRUE(offsets.insert(hit->offset).second) << "two connections share memory";
  }
  EXPECT_FALSE(peer.find({9, 3, 0, 500}));
  EXPECT_FALSE(peer.find({8, 3, 0, 0}));
  EXPECT_FALSE(peer.find({9, 3, 1, 0}));
}

TEST(Arena, ClosedContextsGiveTheirMemoryAndEntriesBack) {
  OwnArena arena(0, 2, fifo_bytes, false);
  const ArenaView peer(arena.memory(), 0, arena.nonce());
  const Fifo first = arena.open({1, 0, 1, 0}, layout);
  first.lines[0].number.store(1);
  first.credit->consumed.store(1);
  arena.close_context(1);
  EXPECT_FALSE(peer.find({1, 0, 1, 0}));
  // Many more lives than the directory has entries.
  for (std::uint64_t context = 2; context < 50'000; ++context) {
    const Fifo again = arena.open({context, 0, 1, 0}, layout);
    ASSERT_EQ(again.lines, first.lines);
    ASSERT_EQ(again.lines[0].number.load(), 0U);
    ASSERT_EQ(again.credit->consumed.load(), 0U);
    ASSERT_TRUE(peer.find({context, 0, 1, 0}));
    arena.close_context(context);
  }
}

TEST(Arena, DroppedGenerationIsNotFoundAgain) {
  OwnArena arena(0, 2, fifo_bytes, false);
  const ArenaView peer(arena.memory(), 0, arena.nonce());
  arena.open({1, 0, 1, 0}, layout);
  ArenaView::drop(*peer.find({1, 0, 1, 0}));
  EXPECT_FALSE(peer.find({1, 0, 1, 0}));
  arena.close_context(1);
  arena.open({1, 0, 1, 0}, layout);
  EXPECT_TRUE(peer.find({1, 0, 1, 0}));
}

TEST(Arena, FullDirectoryIsAnError) {
  OwnArena arena(0, 1, fifo_bytes, false);
  const FifoLayout small{1, 64};
  const auto fill = [&] {
    for (std::uint32_t tag = 0; tag < 100'000; ++tag) arena.open({1, 0, 0, tag}, small);
  };
  EXPECT_THROW(fill(), Error);
}

TEST(Arena, RefusesAHeaderThatIsNotThePeers) {
  OwnArena arena(2, 4, fifo_bytes, false);
  auto& header = *reinterpret_cast<ArenaHeader*>(arena.memory()->data());
  const auto refused = [&](int rank, const Nonce& nonce) {
    try {
      const ArenaView view(arena.memory(), rank, nonce);
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::transport && error.peer() == rank;
    }
  };
  EXPECT_FALSE(refused(2, arena.nonce()));
  EXPECT_TRUE(refused(1, arena.nonce()));
  Nonce other = arena.nonce();
  other[3] ^= 1;
  EXPECT_TRUE(refused(2, other));
  const auto spoiled = [&](auto& field, auto value) {
    const auto before = field;
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
    const bool result = refused(2, arena.nonce());
    field = before;
    return result;
  };
  EXPECT_TRUE(spoiled(header.magic, 0));
  EXPECT_TRUE(spoiled(header.version, 99));
  EXPECT_TRUE(spoiled(header.bytes, std::uint64_t{1} << 50));
  EXPECT_TRUE(spoiled(header.directory_entries, 0));
  EXPECT_TRUE(spoiled(header.directory_entries, 12345));
  EXPECT_TRUE(spoiled(header.directory_entries, std::uint64_t{1} << 40));
  EXPECT_TRUE(spoiled(header.directory_entries, std::uint64_t{1} << 63));
  EXPECT_FALSE(refused(2, arena.nonce()));
}

TEST(Arena, RefusesMemoryTooSmallForAHeader) {
  auto memory = std::make_shared<base::SharedMemory>(base::SharedMemory::create("test", 1));
  EXPECT_THROW(ArenaView(memory, 0, Nonce{}), Error);
}

TEST(Arena, RefusesEntriesThatPointOutside) {
  OwnArena arena(0, 2, fifo_bytes, false);
  const ArenaView peer(arena.memory(), 0, arena.nonce());
  const ConnectionKey key{1, 0, 1, 0};
  arena.open(key, layout);
  DirectoryEntry& entry = *peer.find(key)->entry;
  const std::uint64_t bytes = arena.memory()->bytes();
  const auto spoiled = [&](auto& field, auto value) {
    const auto before = field.load();
    field.store(static_cast<decltype(field.load())>(value));
    bool refused = false;
    try {
      peer.find(key);
    } catch (const Error& error) {
      refused = error.code() == ErrorCode::transport && error.peer() == 0;
    }
    field.store(before);
    return refused;
  };
  EXPECT_TRUE(spoiled(entry.offset, 0));
  EXPECT_TRUE(spoiled(entry.offset, 4096));  // inside the directory
  EXPECT_TRUE(spoiled(entry.offset, entry.offset.load() + 64));
  EXPECT_TRUE(spoiled(entry.offset, bytes - 4096));
  EXPECT_TRUE(spoiled(entry.offset, bytes));
  EXPECT_TRUE(spoiled(entry.offset, ~std::uint64_t{4095}));
  EXPECT_TRUE(spoiled(entry.slots, 0));
  EXPECT_TRUE(spoiled(entry.slots, 7));
  EXPECT_TRUE(spoiled(entry.slots, 1U << 31));
  EXPECT_TRUE(spoiled(entry.slot_bytes, 0));
  EXPECT_TRUE(spoiled(entry.slot_bytes, 100));
  EXPECT_TRUE(spoiled(entry.slot_bytes, 0xffffffc0U));
  EXPECT_TRUE(peer.find(key));
}

TEST(Arena, FullDirectoryOfAHostilePeerEndsTheSearch) {
  OwnArena arena(0, 1, fifo_bytes, false);
  const ArenaView peer(arena.memory(), 0, arena.nonce());
  const auto entries = reinterpret_cast<ArenaHeader*>(arena.memory()->data())->directory_entries;
  auto* const directory = reinterpret_cast<DirectoryEntry*>(arena.memory()->data() + sizeof(ArenaHeader));
  for (std::uint64_t i = 0; i < entries; ++i) directory[i].state.store(DirectoryEntry::deleted);
  EXPECT_FALSE(peer.find({1, 0, 0, 0}));
}

TEST(FifoLayout, SplitsMemoryIntoSlotsAndRefusesTooLittle) {
  EXPECT_EQ(FifoLayout::split(512U << 10, 8).slot_bytes, 65536U);
  EXPECT_TRUE(FifoLayout::split(1000'000, 8).valid());
  EXPECT_THROW(FifoLayout::split(1000, 8), Error);
  EXPECT_THROW(FifoLayout::split(std::size_t{1} << 40, 8), Error);
}

TEST(SharedMemory, RefusesADescriptorWithoutASeal) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  EXPECT_THROW(base::SharedMemory::adopt(pipe_ends[0], false, 1), Error);  // closes it, too
  EXPECT_EQ(::close(pipe_ends[0]), -1);
  ::close(pipe_ends[1]);
}

TEST(SharedMemory, BothMappingsSeeTheSameBytes) {
  const auto memory = base::SharedMemory::create("test", 10'000);
  EXPECT_EQ(memory.bytes() % base::page_size(), 0U);
  EXPECT_GE(memory.bytes(), 10'000U);
  memory.data()[9'999] = std::byte{42};
  const auto other = base::SharedMemory::adopt(::dup(memory.fd()), true, 1);
  EXPECT_EQ(other.bytes(), memory.bytes());
  EXPECT_NE(other.data(), memory.data());
  EXPECT_EQ(other.data()[9'999], std::byte{42});
}

}  // namespace
}  // namespace rondo::transport
