// Sizes, durations and whole numbers: what prints must parse to the same again.
#include "base/format.hpp"

#include "harness/target.hpp"

namespace rondo::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (const char* text :
       {"0", "65536", "64K", "64KiB", "2gb", "16777215T", "500ms", "1.5s", "10min", "2h", "20us", "5ns", "0.000000001s",
        "9223372036854775807ns", "-9223372036854775808", "18446744073709551615"}) {
    inputs.push_back(bytes_of(text));
  }
  return inputs;
}

bool parse(std::span<const std::byte> input) {
  const std::string text = text_of(input);
  const auto bytes = base::parse_bytes(text);
  if (bytes) require(base::parse_bytes(base::format_bytes(*bytes)) == bytes, "printed bytes parse to the same");
  const auto duration = base::parse_duration(text);
  if (duration) {
    require(*duration >= 0, "a duration has no sign");
    require(base::parse_duration(base::format_duration(*duration)) == duration, "printed durations parse to the same");
  }
  const auto integer = base::parse_integer(text);
  if (integer) require(base::parse_integer(std::to_string(*integer)) == integer, "printed integers parse to the same");
  return bytes || duration || integer;
}

}  // namespace rondo::fuzz
