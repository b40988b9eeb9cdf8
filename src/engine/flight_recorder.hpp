// FlightRecorder: the last 1,024 operations of a communicator with what became of them. It is the board too: peers'
// questions "what did you call as number 17?" are answered from here.
//
// begin() and end() are called by the issuing or stepping thread (one begin at a time); find() and the dump by any
// thread. Each entry is a seqlock of relaxed atomic words: a reader that sees the stamp change throws its copy away.
#pragma once

#include "base/ticks.hpp"
#include "engine/signature.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rondo::engine {

enum class RecordState : std::uint8_t { running, completed, failed };

struct Record {
  Signature signature;
  std::uint64_t kind = 0;   // hash_of_kind
  std::uint64_t began = 0;  // base::ticks()
  std::uint64_t ended = 0;  // below 3: not taken
  RecordState state = RecordState::running;
};

class FlightRecorder {
 public:
  static constexpr std::uint64_t capacity = 1024;

  FlightRecorder() : entries_(std::make_unique<Entry[]>(capacity)) {}

  // Starts the record of the next collective; `kind` is hash_of_kind(signature).
  void begin(const Signature& signature, std::uint64_t kind) {
    Entry& e = entries_[signature.sequence % capacity];
    e.stamp.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);  // readers that see new words see stamp 0 or the new stamp
    e.words[0].store(pack(signature), std::memory_order_relaxed);
    e.words[1].store(signature.count, std::memory_order_relaxed);
    e.words[2].store(signature.table, std::memory_order_relaxed);
    e.words[3].store(kind, std::memory_order_relaxed);
    e.words[4].store(base::ticks(), std::memory_order_relaxed);
    e.words[5].store(0, std::memory_order_relaxed);
    e.stamp.store(signature.sequence, std::memory_order_release);  // pairs with find()
    last_.store(signature.sequence, std::memory_order_release);
  }
  // Reading the counter costs a tenth of a small collective, so only operations that waited long enough to be looked
  // after (`timed`) have the time of their end recorded. The word is odd for failure and even for success; 0: running.
  void end(std::uint64_t sequence, bool failed, bool timed) {
    const std::uint64_t t = timed ? base::ticks() | 1U : 1U;
    entries_[sequence % capacity].words[5].store(failed ? t : t + 1U, std::memory_order_relaxed);
  }
  std::uint64_t last() const { return last_.load(std::memory_order_acquire); }
  std::optional<Record> find(std::uint64_t sequence) const;
  // Oldest first.
  std::vector<Record> all() const;

 private:
  struct Entry {
    std::atomic<std::uint64_t> stamp{0};
    std::array<std::atomic<std::uint64_t>, 6> words{};
  };
  static std::uint64_t pack(const Signature& s) {
    return static_cast<std::uint64_t>(s.collective) | static_cast<std::uint64_t>(s.type) << 8 |
           static_cast<std::uint64_t>(s.op) << 16 |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(s.root)) << 32;
  }

  std::unique_ptr<Entry[]> entries_;
  std::atomic<std::uint64_t> last_{0};
};

}  // namespace rondo::engine
