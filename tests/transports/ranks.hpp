// Ranks for the tests of transports: sets of transports with their service threads, and waiting on FIFO ends.
#pragma once

#include <rondo/error.hpp>

#include "base/poller.hpp"
#include "base/wait.hpp"
#include "transports/set.hpp"
#include "transports/shm/local_world.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace rondo::transport::test {

inline constexpr base::Nanoseconds patience = 60'000'000'000;

inline bootstrap::Key make_key(std::uint8_t seed) {
  bootstrap::Key key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(seed + 7 * i);
  return key;
}

// Runs poller.wait() and `serve` until destruction.
class ServiceThread {
 public:
  template <class Serve>
  ServiceThread(base::Poller& poller, Serve serve) : poller_(poller) {
    thread_ = std::thread([this, serve] {
      while (!stop_.load(std::memory_order_acquire)) {
        poller_.wait(20'000'000);
        serve();
      }
    });
  }
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;
  ~ServiceThread() {
    stop_.store(true, std::memory_order_release);
    poller_.wake();
    thread_.join();
  }

 private:
  base::Poller& poller_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Rank {
  std::unique_ptr<base::Poller> poller;
  std::unique_ptr<TransportSet> set;
  std::unique_ptr<ServiceThread> service;
  ~Rank() {
    service.reset();
    set.reset();
  }
};

// `list`: "local" for threads of one process, else as RONDO_TRANSPORTS. Ranks live in this process in either case.
class Ranks {
 public:
  Ranks(int count, const std::string& list, std::size_t fifo_bytes = 0) {
    TransportOptions options;
    options.ranks = count;
    options.fifo_bytes = fifo_bytes;
    options.interfaces = "lo";
    auto world = std::make_shared<LocalWorld>(count);
    std::vector<std::vector<std::byte>> table;
    for (int r = 0; r < count; ++r) {
      auto rank = std::make_unique<Rank>();
      rank->poller = base::Poller::make_real();
      if (list == "local") {
        rank->set = std::make_unique<TransportSet>(base::System::real(), world, r, options);
      } else {
        options.list = list;
        rank->set = std::make_unique<TransportSet>(base::System::real(), *rank->poller, make_key(1), r, options);
      }
      table.push_back(rank->set->address());
      ranks_.push_back(std::move(rank));
    }
    for (auto& rank : ranks_) {
      rank->set->start(table);
      rank->service = std::make_unique<ServiceThread>(*rank->poller, [set = rank->set.get()] { set->service(); });
    }
  }
  // As if the rank's process had ended.
  void end(int rank) { ranks_[static_cast<std::size_t>(rank)].reset(); }
  TransportSet& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]->set; }

 private:
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// Waits on the rank's bell, as the engine does, until ready() returns true. Sleeps early, so that lost rings show.
template <class Ready>
void wait_for(TransportSet& set, Pump* pump, Ready&& ready) {
  base::BackOff back_off;
  back_off.spins = 50;
  back_off.yields = 5;
  int looks = 0;
  const auto result = base::wait_until(
      base::System::real(), set.own_bell(), back_off, base::System::real().now() + patience,
      [&] {
        if (pump != nullptr) {
          if (++looks > 50) pump->arm();
          pump->progress();
        }
        return ready();
      },
      [] {});
  if (result != base::WaitResult::ready) throw Error(ErrorCode::deadline, "the test waited too long");
}

inline ReceiveEnd& open_receive(TransportSet& set, const ConnectionKey& key) {
  ReceiveEnd* end = nullptr;
  wait_for(set, nullptr, [&] { return (end = set.try_open_receive(key)) != nullptr; });
  return *end;
}

inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator listing("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(listing), end(listing)));
}

// Message m of a stream: reproducible on both sides without being sent.
struct Message {
  std::uint32_t signature = 0;
  PayloadKind kind = PayloadKind::slot;
  std::vector<std::byte> payload;
};
inline Message make_message(std::uint64_t m, std::size_t slot_bytes) {
  std::uint64_t x = m * 0x9e3779b97f4a7c15U + 1;
  const auto next = [&x] {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
  };
  Message message;
  message.signature = static_cast<std::uint32_t>(next());
  std::size_t length = 0;
  switch (next() % 16) {
    case 0: length = slot_bytes; break;
    case 1: length = 0; break;
    case 2: length = next() % (slot_bytes + 1); break;
    case 3:
    case 4:
    case 5: length = next() % 5000; break;
    default: length = next() % (inline_bytes + 1); break;
  }
  if (length > slot_bytes) length = slot_bytes;
  message.kind = length <= inline_bytes && next() % 4 != 0 ? PayloadKind::inlined : PayloadKind::slot;
  message.payload.resize(length);
  for (std::byte& b : message.payload)
    b = static_cast<std::byte>((x = x * 6364136223846793005U + 1442695040888963407U) >> 56);
  return message;
}

inline void send_message(TransportSet& set, SendEnd& end, const Message& message) {
  wait_for(set, end.pump, [&] { return end.try_acquire(); });
  if (!message.payload.empty()) {
    std::memcpy(message.kind == PayloadKind::inlined ? end.line().payload : end.slot(), message.payload.data(),
                message.payload.size());
  }
  end.publish(message.signature, message.payload.size(), message.kind);
  end.flush();
}
// Compares the next message with `expected`, then releases it.
inline bool receive_message(TransportSet& set, ReceiveEnd& end, const Message& expected) {
  const SlotLine* line = nullptr;
  wait_for(set, end.pump, [&] { return (line = end.try_peek()) != nullptr; });
  const std::byte* const payload = ReceiveEnd::kind(*line) == PayloadKind::inlined ? line->payload : end.slot();
  const bool same =
      line->signature == expected.signature && ReceiveEnd::kind(*line) == expected.kind &&
      ReceiveEnd::length(*line) == expected.payload.size() &&
      (expected.payload.empty() || std::memcmp(payload, expected.payload.data(), expected.payload.size()) == 0);
  end.release();
  end.flush();
  return same;
}

}  // namespace rondo::transport::test
