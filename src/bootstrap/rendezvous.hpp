// Rendezvous: the place where all ranks of a world meet once, to learn each other's addresses.
//
// A service on a thread of its own, in the launcher's process or rank 0's. It ends when all ranks have the table, or
// after ten minutes in which nobody came. It answers everybody alike: the table, or one error that names who is
// missing, who came twice, or who differs from whom.
#pragma once

#include <rondo/unique_id.hpp>

#include "base/socket.hpp"
#include "base/system.hpp"
#include "bootstrap/key.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace rondo::bootstrap {

Key random_key();

// A UniqueId as its parts. As many addresses are kept as fit (12 of IPv4, 4 of IPv6), the first ones first and one
// loopback address in any case if there is one. Throws Error(invalid_argument) without an address.
UniqueId make_unique_id(const Key& key, std::span<const base::SocketAddress> addresses, std::uint16_t port);
// Throws Error(invalid_argument) when the bytes are no UniqueId.
std::vector<base::SocketAddress> addresses_of(const UniqueId& id);

class Rendezvous {
 public:
  // Ends the service; ranks that still wait are told that it went.
  ~Rendezvous();
  Rendezvous(Rendezvous&&) noexcept;
  Rendezvous& operator=(Rendezvous&&) noexcept;

  const UniqueId& id() const;
  // The service has ended by itself.
  bool finished() const;

 private:
  friend Rendezvous start_rendezvous(std::span<const base::SocketAddress>, base::PortRange, const Key&);
  class Service;
  explicit Rendezvous(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

// Listens on all addresses at one port of the range ({0, 0}: any). Throws Error(system) when it cannot.
Rendezvous start_rendezvous(std::span<const base::SocketAddress> addresses, base::PortRange ports, const Key& key);

// RONDO_PORT_RANGE from the environment; {0, 0} when unset.
base::PortRange port_range_from_environment();

}  // namespace rondo::bootstrap
