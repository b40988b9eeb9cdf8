#include "base/environment.hpp"

#include <rondo/error.hpp>

#include "base/format.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

namespace rondo::base {

namespace {

constexpr std::array known = {
    Variable{"RONDO_ALGO", "text", "chosen by cost", true, "all_reduce:0-4K=one_shot,4K-inf=ring",
             "which algorithm runs for which collective and message size"},
    Variable{"RONDO_DEADLINE", "duration", "10min", false, "30s",
             "how long an operation may take before it fails on all ranks"},
    Variable{"RONDO_DEBUG", "text", "WARN", false, "INFO", "what is logged: WARN, INFO or TRACE"},
    Variable{"RONDO_DEBUG_FILE", "file", "standard error", false, "/tmp/rondo.%h.%p.log",
             "where the log goes; %h is the host name, %p the process id"},
    Variable{"RONDO_DEBUG_SUBSYS", "list", "ALL", false, "INIT,NET",
             "who logs at INFO and TRACE: INIT, NET, SHM, PLAN, ENGINE, ALL; ^ before a name excludes it"},
    Variable{"RONDO_DETERMINISTIC", "switch", "0", true, "1",
             "results that do not depend on algorithm, timing or allocation"},
    Variable{"RONDO_FIFO_BYTES", "bytes", "chosen by the transport", true, "1M", "memory of one connection"},
    Variable{"RONDO_FLIGHT_RECORD", "file", "none", false, "/tmp/rondo.%h.%p.json",
             "where the flight record is written on an error; %h is the host name, %p the process id"},
    Variable{"RONDO_HEARTBEAT", "duration", "10s", false, "10s",
             "silence after which a rank counts as failed; 0: never"},
    Variable{"RONDO_INTERFACES", "list", "all usable", false, "eth,^docker",
             "network interfaces to use, by the start of the name; ^ before a name excludes it"},
    Variable{"RONDO_JOIN_DEADLINE", "duration", "60s", false, "60s", "how long joining waits for all ranks"},
    Variable{"RONDO_LOCAL_RANK", "integer", "set by the launcher", false, "0", "this process's number on its host"},
    Variable{"RONDO_LOCAL_SIZE", "integer", "set by the launcher", false, "4", "processes of the job on this host"},
    Variable{"RONDO_PORT_RANGE", "text", "any free port", false, "20000-20999", "ports the library may listen on"},
    Variable{"RONDO_RANK", "integer", "set by the launcher", false, "0", "this process's rank"},
    Variable{
        "RONDO_ROOT", "text", "set by the launcher", false, "10.0.0.1:29555",
        "host and port where rank 0 receives the others; with RONDO_RANK and RONDO_SIZE, or beside mpirun or srun"},
    Variable{"RONDO_SECRET_FILE", "file", "none", false, "/home/me/.rondo-secret",
             "file with the job's key: 32 bytes or more, readable by its owner only, the same on all hosts"},
    Variable{"RONDO_SIZE", "integer", "set by the launcher", false, "4", "number of ranks"},
    Variable{"RONDO_TCP_CHANNELS", "integer", "chosen by the transport", true, "4", "sockets a peer and plan"},
    Variable{"RONDO_TRANSPORTS", "list", "shm,tcp", true, "shm,tcp", "transports allowed, best first"},
    Variable{"RONDO_UNIQUE_ID", "text", "set by the launcher", false, "256 hexadecimal digits",
             "the id that the ranks meet by; it holds the key, so keep it from others"},
};

std::string example_of(const std::string& name) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const Variable& v) { return v.name == name; });
  if (found == known.end() || found->example.empty()) return {};
  return fmt::format("for example {}={}", name, found->example);
}

// Levenshtein's distance: insertions, deletions and replacements that turn one into the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

template <class T, class Parse, class Print>
std::optional<T> read_in_range(const Lookup& lookup, const std::string& name, T lowest, T highest,
                               std::string_view what, Parse parse, Print print) {
  const std::optional<std::string> text = lookup(name);
  if (!text || text->empty()) return std::nullopt;
  const std::optional<T> value = parse(*text);
  if (!value) refuse_value(name, *text, fmt::format("must be {}", what));
  if (*value < lowest || *value > highest) {
    refuse_value(name, *text, fmt::format("must be between {} and {}", print(lowest), print(highest)));
  }
  return value;
}

}  // namespace

Lookup process_variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

std::span<const Variable> known_variables() { return known; }

std::string_view nearest_variable(std::string_view name) {
  std::string_view best;
  // The prefix is common to all and says nothing about likeness.
  constexpr std::string_view prefix = "RONDO_";
  const std::string_view own = name.substr(std::min(prefix.size(), name.size()));
  std::size_t best_distance = own.size() / 3 + 1;
  for (const Variable& variable : known) {
    const std::size_t d = distance(own, variable.name.substr(prefix.size()));
    if (d <= best_distance && (best.empty() || d < best_distance)) {
      best = variable.name;
      best_distance = d;
    }
  }
  return best;
}

void refuse_unknown_variables(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (name.rfind("RONDO_", 0) != 0) continue;
    if (std::any_of(known.begin(), known.end(), [&](const Variable& v) { return v.name == name; })) continue;
    const std::string_view nearest = nearest_variable(name);
    throw Error(ErrorCode::configuration,
                fmt::format("the environment sets {}, which is no variable of Rondo{}", name,
                            nearest.empty() ? std::string() : fmt::format("; the nearest one is {}", nearest)),
                fmt::format("unset {}; docs/environment.md lists all variables", name));
  }
}

std::vector<std::string> process_variable_names() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    // An empty variable counts as unset, under any name.
    if (equals == std::string_view::npos || equals + 1 == text.size()) continue;
    names.emplace_back(text.substr(0, equals));
  }
  return names;
}

std::optional<std::int64_t> read_integer(const Lookup& lookup, const std::string& name, std::int64_t lowest,
                                         std::int64_t highest) {
  return read_in_range<std::int64_t>(lookup, name, lowest, highest, "a whole number", parse_integer,
                                     [](std::int64_t v) { return std::to_string(v); });
}

std::optional<std::uint64_t> read_bytes(const Lookup& lookup, const std::string& name, std::uint64_t lowest,
                                        std::uint64_t highest) {
  return read_in_range<std::uint64_t>(lookup, name, lowest, highest, "a number of bytes such as 65536, 64K or 1M",
                                      parse_bytes, format_bytes);
}

std::optional<Nanoseconds> read_duration(const Lookup& lookup, const std::string& name, Nanoseconds lowest,
                                         Nanoseconds highest) {
  return read_in_range<Nanoseconds>(lookup, name, lowest, highest,
                                    "a time with its unit (ns, us, ms, s, min, h) such as 500ms or 10s", parse_duration,
                                    format_duration);
}

std::optional<bool> read_switch(const Lookup& lookup, const std::string& name) {
  const std::optional<std::string> text = lookup(name);
  if (!text || text->empty()) return std::nullopt;
  std::string lower = *text;
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (const std::string_view yes : {"1", "true", "yes", "on"}) {
    if (lower == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "no", "off"}) {
    if (lower == no) return false;
  }
  refuse_value(name, *text, "must be 1 or 0");
}

void refuse_value(const std::string& name, std::string_view value, std::string_view constraint) {
  throw Error(ErrorCode::configuration, fmt::format("{}='{}': {}", name, value, constraint), example_of(name));
}

}  // namespace rondo::base
