// Settings: what a communicator runs with, resolved from Config (which wins), then the environment, then defaults.
//
// A value; resolved once when ranks join. Errors are Error(configuration).
#pragma once

#include <rondo/config.hpp>

#include "base/environment.hpp"
#include "base/socket.hpp"
#include "base/system.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rondo::base {

struct Settings {
  std::string name = "world";
  Nanoseconds deadline = 600'000'000'000;
  Nanoseconds join_deadline = 60'000'000'000;
  Nanoseconds heartbeat = 10'000'000'000;  // 0: never
  std::vector<std::string> transports = {"shm", "tcp"};
  std::string algorithm;  // "": by cost. Judged by the tuner, which knows the names.
  bool deterministic = false;
  std::size_t fifo_bytes = 0;  // 0: the transport's choice
  int tcp_channels = 0;        // 0: the transport's choice
  std::string interfaces;      // "": all usable
  std::string flight_record;   // pattern with %h and %p; "": not written
  PortRange ports;             // that may be listened on
};

Settings resolve_settings(const Config& config, const Lookup& lookup);
// From this process's environment; also refuses unknown RONDO_* variables and malformed RONDO_DEBUG ones.
Settings resolve_settings(const Config& config);

// "NAME=value\n" lines, sorted by name, of the settings that must agree on all ranks.
std::string settings_fingerprint(const Settings& settings);

}  // namespace rondo::base
