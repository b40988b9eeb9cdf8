// Finding out which of a peer's addresses leads to it. Blocking, for any thread but the service thread.
#pragma once

#include "base/socket.hpp"
#include "bootstrap/key.hpp"

#include <optional>
#include <span>
#include <string>

namespace rondo::transport::tcp {

struct ProbeResult {
  std::optional<std::size_t> address;  // index of the first that answered with the right bytes
  std::string why;                     // which one, and why not the others
};

// Tries all addresses at once: handshake, then a pattern that must come back. Never throws for what a peer does.
ProbeResult probe_addresses(base::System& system, const bootstrap::Key& key, int own_rank, int peer,
                            std::span<const base::SocketAddress> addresses, base::Nanoseconds deadline);

}  // namespace rondo::transport::tcp
