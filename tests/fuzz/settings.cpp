// RONDO_* variables, as "NAME=value" lines: settings, log options, names that are no variable.
#include "base/settings.hpp"

#include "base/format.hpp"
#include "base/log.hpp"
#include "harness/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rondo::fuzz {
namespace {

void check_round_trip(const base::Settings& s) {
  std::map<std::string, std::string> printed = {{"RONDO_DEADLINE", base::format_duration(s.deadline)},
                                                {"RONDO_JOIN_DEADLINE", base::format_duration(s.join_deadline)},
                                                {"RONDO_HEARTBEAT", base::format_duration(s.heartbeat)},
                                                {"RONDO_TRANSPORTS", fmt::format("{}", fmt::join(s.transports, ","))},
                                                {"RONDO_ALGO", s.algorithm},
                                                {"RONDO_DETERMINISTIC", s.deterministic ? "on" : "off"},
                                                {"RONDO_INTERFACES", s.interfaces}};
  if (s.fifo_bytes != 0) printed["RONDO_FIFO_BYTES"] = base::format_bytes(s.fifo_bytes);
  if (s.tcp_channels != 0) printed["RONDO_TCP_CHANNELS"] = std::to_string(s.tcp_channels);
  if (s.ports.first != 0) printed["RONDO_PORT_RANGE"] = fmt::format("{}-{}", s.ports.first, s.ports.last);
  const base::Settings again = base::resolve_settings(Config{}, lookup_in(printed));
  require(base::settings_fingerprint(again) == base::settings_fingerprint(s), "printed settings agree with themselves");
  require(again.deadline == s.deadline && again.join_deadline == s.join_deadline && again.heartbeat == s.heartbeat,
          "printed times are the same");
  require(again.ports.first == s.ports.first && again.ports.last == s.ports.last, "printed ports are the same");
}

}  // namespace

std::vector<Bytes> seeds() {
  return {bytes_of("RONDO_DEADLINE=30s\nRONDO_JOIN_DEADLINE=1.5s\nRONDO_HEARTBEAT=0\nRONDO_TRANSPORTS=tcp,shm"),
          bytes_of("RONDO_ALGO=all_reduce:0-4K=one_shot\nRONDO_DETERMINISTIC=Yes\nRONDO_FIFO_BYTES=1M"),
          bytes_of("RONDO_TCP_CHANNELS=4\nRONDO_INTERFACES=eth,^docker\nRONDO_PORT_RANGE=20000-20999"),
          bytes_of("RONDO_DEBUG=info\nRONDO_DEBUG_SUBSYS=INIT,^net\nRONDO_DEBUG_FILE=/tmp/%h.%p.%%"),
          bytes_of("RONDO_FLIGHT_RECORD=%h.%p.json\nRONDO_DEBUG_SUBSYS=^PLAN")};
}

bool parse(std::span<const std::byte> input) {
  const auto variables = environment_of(input);
  const auto lookup = lookup_in(variables);
  std::vector<std::string> names;
  for (const auto& [name, value] : variables) names.push_back(name);
  bool good = accepts([&] { base::refuse_unknown_variables(names); }, {ErrorCode::configuration});
  good = accepts(
             [&] {
               const auto options = base::parse_log_options(lookup("RONDO_DEBUG"), lookup("RONDO_DEBUG_SUBSYS"),
                                                            lookup("RONDO_DEBUG_FILE"));
               for (int s = 0; s < base::subsystem_count; ++s) {
                 const auto level = options.levels >> (4 * s) & 15U;
                 require(level >= 1 && level <= 3, "every subsystem has a level");
               }
             },
             {ErrorCode::configuration}) &&
         good;
  return accepts([&] { check_round_trip(base::resolve_settings(Config{}, lookup)); }, {ErrorCode::configuration}) &&
         good;
}

}  // namespace rondo::fuzz
