#include "base/format.hpp"

#include <array>
#include <charconv>
#include <limits>

namespace rondo::base {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
// Largest first: printing takes the first that divides.
constexpr std::array<Unit, 6> duration_units = {{{"h", 3'600'000'000'000},
                                                 {"min", 60'000'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"ms", 1'000'000},
                                                 {"us", 1'000},
                                                 {"ns", 1}}};
constexpr std::string_view byte_units = "KMGT";

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

std::size_t digits_at_start(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
  return n;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) { return parse_whole<std::int64_t>(text); }

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const std::size_t digits = digits_at_start(text);
  const auto number = parse_whole<std::uint64_t>(text.substr(0, digits));
  if (!number) return std::nullopt;
  std::string unit;
  for (const char c : text.substr(digits)) unit += upper(c);
  if (unit.empty() || unit == "B") return number;
  const std::size_t power = byte_units.find(unit.front());
  const std::string rest = unit.substr(1);
  if (power == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "IB")) return std::nullopt;
  const std::uint64_t factor = std::uint64_t{1} << (10 * (power + 1));
  if (*number > std::numeric_limits<std::uint64_t>::max() / factor) return std::nullopt;
  return *number * factor;
}

std::string format_bytes(std::uint64_t bytes) {
  for (std::size_t power = byte_units.size(); power > 0; --power) {
    const std::uint64_t factor = std::uint64_t{1} << (10 * power);
    if (bytes >= factor && bytes % factor == 0) return std::to_string(bytes / factor) + byte_units[power - 1];
  }
  return std::to_string(bytes);
}

std::optional<std::int64_t> parse_duration(std::string_view text) {
  if (text == "0") return 0;
  const std::size_t whole_digits = digits_at_start(text);
  const auto whole = parse_whole<std::int64_t>(text.substr(0, whole_digits));
  if (!whole) return std::nullopt;
  std::string_view rest = text.substr(whole_digits);
  std::string_view fraction;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    const std::size_t n = digits_at_start(rest);
    if (n == 0) return std::nullopt;
    fraction = rest.substr(0, n);
    rest.remove_prefix(n);
  }
  for (const Unit& unit : duration_units) {
    if (rest != unit.name) continue;
    std::int64_t total = 0;
    if (__builtin_mul_overflow(*whole, unit.nanoseconds, &total)) return std::nullopt;
    // Each digit is worth its unit divided by ten once more. Division must be exact: hours and minutes in nanoseconds
    // hold enough factors of ten for every fraction that ends at a nanosecond.
    std::int64_t worth = unit.nanoseconds;
    for (const char digit : fraction) {
      if (worth % 10 != 0) {
        if (digit != '0') return std::nullopt;
        continue;
      }
      worth /= 10;
      if (__builtin_add_overflow(total, worth * (digit - '0'), &total)) return std::nullopt;
    }
    return total;
  }
  return std::nullopt;
}

std::string format_duration(std::int64_t nanoseconds) {
  if (nanoseconds == 0) return "0";
  for (const Unit& unit : duration_units) {
    if (nanoseconds % unit.nanoseconds == 0) {
      return std::to_string(nanoseconds / unit.nanoseconds).append(unit.name);
    }
  }
  return std::to_string(nanoseconds).append("ns");
}

}  // namespace rondo::base
