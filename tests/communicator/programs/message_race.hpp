// Two threads pass messages through a FIFO, as a sending and a receiving rank do. What ThreadSanitizer says of it
// depends on whether publish() releases what it publishes: see planted_race.cpp and no_race.cpp.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "transports/fifo.hpp"

namespace rondo {

inline int pass_messages() {
  constexpr std::uint32_t slots = 4, slot_bytes = 256;
  constexpr std::uint64_t messages = 1000;
  std::vector<transport::SlotLine> lines(slots);
  std::vector<std::byte> data(std::size_t{slots} * slot_bytes);
  transport::CreditLine credit{};
  transport::SendEnd to;
  transport::ReceiveEnd from;
  to.lines = from.lines = lines.data();
  to.data = from.data = data.data();
  to.credit = from.credit = &credit;
  to.slots = from.slots = slots;
  to.slot_bytes = from.slot_bytes = slot_bytes;
  std::thread sender([&] {
    for (std::uint64_t m = 0; m < messages; ++m) {
      while (!to.try_acquire()) std::this_thread::yield();
      std::memcpy(to.slot(), &m, sizeof m);
      to.publish(1, sizeof m, transport::PayloadKind::slot);
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t m = 0; m < messages; ++m) {
    while (from.try_peek() == nullptr) std::this_thread::yield();
    std::uint64_t found = 0;
    std::memcpy(&found, from.slot(), sizeof found);
    wrong += found != m;
    from.release();
  }
  sender.join();
  std::printf("%d messages, %d wrong\n", static_cast<int>(messages), static_cast<int>(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace rondo
