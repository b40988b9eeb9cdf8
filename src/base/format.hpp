// Sizes and durations as people write them: "64K", "500ms". Parsing and printing are inverse to each other.
//
// Pure functions. The parsers answer an empty optional for text that is malformed or too large; who asks says which
// variable or option it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rondo::base {

// A decimal integer without anything around it. Refuses a sign where T has none, and overflow.
std::optional<std::int64_t> parse_integer(std::string_view text);

// An integer with an optional binary unit, in any case: "65536", "64K", "64KB", "64KiB", "1M", "2G", "1T".
std::optional<std::uint64_t> parse_bytes(std::string_view text);
// The shortest exact form: 65536 -> "64K", 65537 -> "65537".
std::string format_bytes(std::uint64_t bytes);

// A decimal number with a unit: "500ms", "1.5s", "10min", "2h", "20us", "5ns"; "0" needs none. Nanoseconds; digits
// beyond them are refused.
std::optional<std::int64_t> parse_duration(std::string_view text);
// The shortest exact form: 1'500'000'000 -> "1500ms", 60'000'000'000 -> "1min".
std::string format_duration(std::int64_t nanoseconds);

}  // namespace rondo::base
