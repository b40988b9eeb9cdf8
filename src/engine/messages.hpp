// What engines tell each other over the control tree when something takes long or fails, as bytes.
//
// Values and pure functions. Decoders throw Error(transport) on malformed bytes.
#pragma once

#include <rondo/error.hpp>

#include "engine/pair_counts.hpp"
#include "engine/signature.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rondo::engine {

enum class MessageType : std::uint32_t { inquiry = 1, status = 2, verdict = 3 };

// "This is what I have called, and I wait."
struct Inquiry {
  static constexpr std::size_t most_signatures = 32;
  std::vector<Signature> signatures;  // oldest first; the last is of the collective that takes long
  std::vector<PairCount> pairs;       // with the reader, of the uneven ones; oldest first; at most PairCounts::most
  bool blocked = false;               // a thread goes on only after it
  std::uint64_t exchanges = 0;        // the calls over the control tree that the sender has begun
};
std::vector<std::byte> encode(const Inquiry& inquiry);
Inquiry decode_inquiry(std::span<const std::byte> bytes);

// The answer of a rank whose signatures agree: where it is.
struct StatusMessage {
  std::uint64_t last_called = 0;
  bool running = false;  // its operation last_called has not ended
  std::string progress;
  std::string exchange;  // the split, allocate or close it is in; empty: none
};
std::vector<std::byte> encode(const StatusMessage& status);
StatusMessage decode_status(std::span<const std::byte> bytes);

// Why the communicator has failed.
std::vector<std::byte> encode_verdict(const Error& error);
Error decode_verdict(std::span<const std::byte> bytes);

}  // namespace rondo::engine
