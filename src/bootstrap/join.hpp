// Joining: from a UniqueId to a table of all ranks and a connected control tree. All or nothing.
#pragma once

#include <rondo/unique_id.hpp>

#include "base/poller.hpp"
#include "base/system.hpp"
#include "bootstrap/control_link.hpp"
#include "bootstrap/key.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rondo::bootstrap {

// What every rank says about itself while joining.
struct PeerInfo {
  std::string host;  // host name, for people; never used to infer locality
  std::int64_t pid = 0;
  std::string settings;                // fingerprint of settings that must agree, "NAME=value\n" lines sorted by name
  std::vector<std::byte> blob;         // the transports' addresses, opaque here
  std::vector<std::string> addresses;  // filled by join: where the rank's control listener is
};

struct JoinOptions {
  int rank = 0;
  int size = 1;
  base::Nanoseconds deadline = 60'000'000'000;  // from now
  std::string interfaces;                       // RONDO_INTERFACES filter; empty: all usable
  PeerInfo self;
};

struct Joined {
  std::vector<PeerInfo> peers;                        // by rank
  std::map<int, std::unique_ptr<ControlLink>> links;  // tree neighbours, authenticated; registered with the poller
  Key key{};
  // Phase timings in milliseconds for the INFO log: {"rendezvous", 3.1}, ...
  std::vector<std::pair<std::string, double>> phases;
};

// Blocks on the calling thread. Throws the same Error on every rank that can be told: a missing rank is named
// (deadline), a wrong key is Error(authentication), two ranks with the same number, or different sizes, or settings
// that differ (Error(configuration) naming the variable, the two values and the two ranks). Control links use `poller`
// from now on.
Joined join(const UniqueId& id, const JoinOptions& options, base::Poller& poller);

Key key_of(const UniqueId& id);

}  // namespace rondo::bootstrap
