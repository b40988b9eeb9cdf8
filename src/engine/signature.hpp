// Signature: what all ranks must agree on for one collective, and its hash that rides in every message.
#pragma once

#include <rondo/types.hpp>

#include <cstdint>
#include <string>

namespace rondo::engine {

struct Signature {
  std::uint64_t sequence = 0;  // the communicator's n-th collective, from 1
  Collective collective = Collective::all_reduce;
  DataType type = DataType::int8;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = -1;   // -1: the collective has none
  std::uint64_t count = 0;  // elements as passed to the call; uneven forms: a hash of what all ranks know
  std::uint64_t table = 0;  // hash of the tuning table, so that ranks can't choose differently
  bool operator==(const Signature&) const = default;
};

// Everything but the sequence, mixed; computed once a kind of call.
std::uint64_t hash_of_kind(const Signature& signature);
// What slots carry.
inline std::uint32_t slot_signature(std::uint64_t kind, std::uint64_t sequence) {
  const std::uint64_t mixed = (kind ^ (sequence * 0x9E3779B97F4A7C15ULL)) * 0xD6E8FEB86659FD93ULL;
  return static_cast<std::uint32_t>(mixed >> 32);
}
// True for the uneven forms whose counts only the two ranks of a pair know.
bool counts_are_local(Collective c);
// "all_reduce #17 (1024 x float32, sum)".
std::string describe(const Signature& signature);

}  // namespace rondo::engine
