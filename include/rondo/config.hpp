// Settings of a communicator. What is set here beats the environment variable named beside it; what is set nowhere has
// the default given. Fields marked (same) must agree on all ranks: a difference is named when the ranks join.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace rondo {

struct Config {
  std::string name = "world";                             // in errors and logs
  std::optional<std::chrono::nanoseconds> deadline;       // RONDO_DEADLINE, 10 min: default of every operation
  std::optional<std::chrono::nanoseconds> join_deadline;  // RONDO_JOIN_DEADLINE, 60 s: for all ranks to arrive
  std::optional<std::chrono::nanoseconds> heartbeat;      // RONDO_HEARTBEAT, 10 s: silence after which a rank failed
  std::optional<std::string> transports;                  // RONDO_TRANSPORTS (same), "shm,tcp": allowed, best first
  std::optional<std::string> algorithm;   // RONDO_ALGO (same), e.g. "all_reduce:0-4k=one_shot,4k-inf=ring"
  std::optional<bool> deterministic;      // RONDO_DETERMINISTIC (same), false: see docs/determinism.md
  std::optional<std::size_t> fifo_bytes;  // RONDO_FIFO_BYTES (same): memory of one connection
  std::optional<int> tcp_channels;        // RONDO_TCP_CHANNELS (same), sockets a peer and plan
  std::optional<std::string> interfaces;  // RONDO_INTERFACES, e.g. "eth,^docker": addresses to offer
};

}  // namespace rondo
