// What ranks and the rendezvous tell each other while joining, as bytes. Decoders throw Error(transport) on malformed
// bytes.
#pragma once

#include <rondo/error.hpp>

#include "base/bytes.hpp"
#include "base/system.hpp"
#include "bootstrap/join.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rondo::bootstrap {

struct JoinRequest {
  std::int32_t rank = 0;
  std::int32_t size = 1;
  base::Nanoseconds patience = 0;  // how long this rank will wait from now
  PeerInfo self;
};
std::vector<std::byte> encode(const JoinRequest& request);
JoinRequest decode_join_request(std::span<const std::byte> bytes);

// The table, or why there is none.
struct JoinAnswer {
  std::optional<Error> error;
  std::vector<PeerInfo> peers;
};
std::vector<std::byte> encode(const JoinAnswer& answer);
JoinAnswer decode_join_answer(std::span<const std::byte> bytes);

std::vector<std::byte> encode_outcome(const std::optional<Error>& error);
std::optional<Error> decode_outcome(std::span<const std::byte> bytes);

// "rank 3 (host, pid 17)"
std::string describe(int rank, const PeerInfo& info);

// The first setting that differs, as "RONDO_ALGO is 'ring' on rank 0 (...) and 'tree' on rank 2 (...)"; empty when all
// agree.
std::string settings_difference(int rank_a, const PeerInfo& a, int rank_b, const PeerInfo& b);

}  // namespace rondo::bootstrap
