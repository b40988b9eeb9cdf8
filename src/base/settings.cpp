#include "base/settings.hpp"

#include <rondo/error.hpp>

#include "base/format.hpp"
#include "base/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace rondo::base {

namespace {

constexpr Nanoseconds shortest_wait = 1'000'000;                    // 1 ms
constexpr Nanoseconds longest_wait = 1000LL * 3'600'000'000'000LL;  // 1000 h, far from overflow when added to now()
constexpr std::uint64_t smallest_fifo = 4096;
constexpr std::uint64_t largest_fifo = std::uint64_t{1} << 30;
constexpr int most_channels = 64;
constexpr std::array<std::string_view, 2> transport_names = {"shm", "tcp"};

// A field of Config as its variable would write it, so that both pass one check.
Lookup with_config(const Config& config, const Lookup& environment) {
  return [&config, &environment](const std::string& name) -> std::optional<std::string> {
    const auto duration = [&](const std::optional<std::chrono::nanoseconds>& value) {
      return value ? format_duration(value->count()) : std::string();
    };
    std::string own;
    if (name == "RONDO_DEADLINE") own = duration(config.deadline);
    else if (name == "RONDO_JOIN_DEADLINE") own = duration(config.join_deadline);
    else if (name == "RONDO_HEARTBEAT") own = duration(config.heartbeat);
    else if (name == "RONDO_TRANSPORTS" && config.transports) own = *config.transports;
    else if (name == "RONDO_DETERMINISTIC" && config.deterministic) own = *config.deterministic ? "1" : "0";
    else if (name == "RONDO_FIFO_BYTES" && config.fifo_bytes) own = format_bytes(*config.fifo_bytes);
    else if (name == "RONDO_TCP_CHANNELS" && config.tcp_channels) own = std::to_string(*config.tcp_channels);
    // An empty text in Config is a choice (none), unlike an empty variable.
    else if (name == "RONDO_ALGO" && config.algorithm) return *config.algorithm;
    else if (name == "RONDO_INTERFACES" && config.interfaces) return *config.interfaces;
    if (!own.empty()) return own;
    return environment(name);
  };
}

std::vector<std::string> parse_transports(const std::string& text) {
  std::vector<std::string> list;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string name = text.substr(start, end - start);
    if (std::find(transport_names.begin(), transport_names.end(), name) == transport_names.end()) {
      refuse_value("RONDO_TRANSPORTS", text, fmt::format("'{}' is no transport; there are shm and tcp", name));
    }
    if (std::find(list.begin(), list.end(), name) != list.end()) {
      refuse_value("RONDO_TRANSPORTS", text, fmt::format("'{}' is named twice", name));
    }
    list.push_back(name);
    start = end + 1;
  }
  return list;
}

}  // namespace

Settings resolve_settings(const Config& config, const Lookup& lookup) {
  const Lookup read = with_config(config, lookup);
  const auto text = [&](const char* name) {
    std::optional<std::string> value = read(name);
    return value ? *value : std::string();
  };
  Settings s;
  s.name = config.name;
  s.deadline = read_duration(read, "RONDO_DEADLINE", shortest_wait, longest_wait).value_or(s.deadline);
  s.join_deadline = read_duration(read, "RONDO_JOIN_DEADLINE", shortest_wait, longest_wait).value_or(s.join_deadline);
  s.heartbeat = read_duration(read, "RONDO_HEARTBEAT", 0, longest_wait).value_or(s.heartbeat);
  if (const std::string list = text("RONDO_TRANSPORTS"); !list.empty()) s.transports = parse_transports(list);
  s.algorithm = text("RONDO_ALGO");
  s.deterministic = read_switch(read, "RONDO_DETERMINISTIC").value_or(false);
  s.fifo_bytes = read_bytes(read, "RONDO_FIFO_BYTES", smallest_fifo, largest_fifo).value_or(0);
  s.tcp_channels = static_cast<int>(read_integer(read, "RONDO_TCP_CHANNELS", 1, most_channels).value_or(0));
  s.interfaces = text("RONDO_INTERFACES");
  s.flight_record = text("RONDO_FLIGHT_RECORD");
  if (!s.flight_record.empty()) static_cast<void>(expand_file_pattern("RONDO_FLIGHT_RECORD", s.flight_record));
  if (const std::string range = text("RONDO_PORT_RANGE"); !range.empty()) {
    s.ports = PortRange::parse(range, "RONDO_PORT_RANGE");
  }
  return s;
}

Settings resolve_settings(const Config& config) {
  const Lookup lookup = process_variables();
  refuse_unknown_variables(process_variable_names());
  static_cast<void>(parse_log_options(lookup("RONDO_DEBUG"), lookup("RONDO_DEBUG_SUBSYS"), lookup("RONDO_DEBUG_FILE")));
  return resolve_settings(config, lookup);
}

std::string settings_fingerprint(const Settings& s) {
  return fmt::format(
      "RONDO_ALGO={}\nRONDO_DETERMINISTIC={}\nRONDO_FIFO_BYTES={}\nRONDO_TCP_CHANNELS={}\nRONDO_TRANSPORTS={}\n",
      s.algorithm, s.deterministic ? 1 : 0, s.fifo_bytes == 0 ? std::string("auto") : format_bytes(s.fifo_bytes),
      s.tcp_channels == 0 ? std::string("auto") : std::to_string(s.tcp_channels), fmt::join(s.transports, ","));
}

}  // namespace rondo::base
