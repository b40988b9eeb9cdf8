// The RONDO_* environment variables: one table of all of them, and typed access with errors that say what works.
//
// An empty variable counts as unset. Functions take the environment as a Lookup, so that tests need not change the
// process's own; thread-safe as far as the Lookup is. Errors are Error(configuration) and state variable, value,
// constraint and an example.
#pragma once

#include "base/system.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::base {

// Looks a variable up; an empty one means unset.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
// This process's environment. Not safe against a setenv() on another thread at the same time, as getenv() isn't.
Lookup process_variables();

struct Variable {
  std::string_view name;
  std::string_view type;           // "duration", "bytes", "integer", "switch", "list", "text", "file"
  std::string_view default_value;  // as shown; may describe ("set by the launcher")
  bool same;                       // must agree on all ranks
  std::string_view example;
  std::string_view meaning;
};

// Every variable that means something to the library or its launcher, sorted by name. docs/environment.md shows it.
std::span<const Variable> known_variables();
// The known name most like `name`; empty if none is near (more than a third of its letters differ).
std::string_view nearest_variable(std::string_view name);
// Throws if a name starts with RONDO_ but is not known: a misspelt setting would otherwise be ignored in silence.
void refuse_unknown_variables(std::span<const std::string> names);
// The names in this process's environment.
std::vector<std::string> process_variable_names();

// Each returns an empty optional when unset, and throws when malformed or outside [lowest, highest].
std::optional<std::int64_t> read_integer(const Lookup& lookup, const std::string& name, std::int64_t lowest,
                                         std::int64_t highest);
std::optional<std::uint64_t> read_bytes(const Lookup& lookup, const std::string& name, std::uint64_t lowest,
                                        std::uint64_t highest);
std::optional<Nanoseconds> read_duration(const Lookup& lookup, const std::string& name, Nanoseconds lowest,
                                         Nanoseconds highest);
// 1, true, yes, on; 0, false, no, off; in any case.
std::optional<bool> read_switch(const Lookup& lookup, const std::string& name);

// The error itself, for values that only their user can judge: "NAME='value': constraint (for example NAME=example)".
[[noreturn]] void refuse_value(const std::string& name, std::string_view value, std::string_view constraint);

}  // namespace rondo::base
