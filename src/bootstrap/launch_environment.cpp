#include "bootstrap/launch_environment.hpp"

#include <rondo/error.hpp>

#include "base/environment.hpp"
#include "base/socket.hpp"
#include "bootstrap/launch_sources.hpp"
#include "bootstrap/rendezvous.hpp"
#include "bootstrap/secret.hpp"

#include <fmt/format.h>
#include <netdb.h>

#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace rondo::bootstrap {

namespace {

// The services that rank 0 hosts for launchers that don't; each lives until the process ends or the next one starts
// after it has finished.
void keep_alive(Rendezvous service) {
  static std::mutex mutex;
  static std::list<Rendezvous> services;
  const std::lock_guard lock(mutex);
  services.remove_if([](const Rendezvous& old) { return old.finished(); });
  services.push_back(std::move(service));
}

std::vector<base::SocketAddress> resolve(const std::string& host, const std::string& source) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<base::SocketAddress> addresses;
  for (const addrinfo* a = failure == 0 ? found : nullptr; a != nullptr; a = a->ai_next) {
    if (a->ai_family == AF_INET || a->ai_family == AF_INET6) {
      addresses.push_back(base::SocketAddress::from_native(a->ai_addr));
    }
  }
  if (addresses.empty()) {
    throw Error(ErrorCode::configuration,
                fmt::format("{} says that rank 0 is on host '{}', which cannot be resolved: {}", source, host,
                            failure == 0 ? "no IP address" : gai_strerror(failure)),
                "give its address: RONDO_ROOT=10.0.0.1:29555");
  }
  return addresses;
}

Key find_key(const Lookup& lookup, const LaunchDescription& d) {
  if (const auto path = lookup("RONDO_SECRET_FILE"); path && !path->empty()) {
    return derive_key(read_secret_file(*path), d.job);
  }
  if (d.single_host) {
    return derive_key(user_secret(user_secret_directory(lookup("XDG_RUNTIME_DIR").value_or(""))), d.job);
  }
  throw Error(
      ErrorCode::configuration,
      fmt::format("the ranks that {} started are on several hosts and share no key, so outsiders could join", d.source),
      "make a file on a shared path: (umask 077; head -c 32 /dev/urandom > ~/.rondo-secret), and set "
      "RONDO_SECRET_FILE to its path on all ranks; or start them with: rondo run --hosts a,b");
}

UniqueId host_rendezvous(const Lookup& lookup, const LaunchDescription& d, const Key& key,
                         const std::vector<base::SocketAddress>& root) {
  // On one host nobody else needs to reach it. On several, the root's name may mean something else on its own host (a
  // loopback address in /etc/hosts), so all its addresses listen.
  const std::vector<base::SocketAddress> addresses =
      d.single_host ? root : base::usable_addresses(lookup("RONDO_INTERFACES").value_or(""));
  try {
    Rendezvous service = start_rendezvous(addresses, base::PortRange{d.root_port, d.root_port}, key);
    const UniqueId id = service.id();
    keep_alive(std::move(service));
    return id;
  } catch (const Error& e) {
    throw Error(e.code(),
                fmt::format("rank 0 cannot receive the others at port {} of {} (chosen from {}): {}", d.root_port,
                            d.root_host, d.source, e.message()),
                fmt::format("give a free port on rank 0's host to all ranks: RONDO_ROOT={}:29555", d.root_host));
  }
}

}  // namespace

Lookup process_environment() { return base::process_variables(); }

LaunchEnvironment read_launch_environment(const Lookup& lookup) {
  const LaunchDescription d = describe_launch(lookup);
  LaunchEnvironment environment;
  environment.source = d.source;
  environment.rank = d.rank;
  environment.size = d.size;
  if (!d.unique_id.empty()) {
    try {
      environment.id = UniqueId::from_string(d.unique_id);
    } catch (const Error& e) {
      throw Error(ErrorCode::configuration, fmt::format("RONDO_UNIQUE_ID is malformed: {}", e.message()), e.hint());
    }
    return environment;
  }
  const Key key = find_key(lookup, d);
  const std::vector<base::SocketAddress> root = resolve(d.root_host, d.source);
  environment.id = d.rank == 0 ? host_rendezvous(lookup, d, key, root) : make_unique_id(key, root, d.root_port);
  return environment;
}

}  // namespace rondo::bootstrap
