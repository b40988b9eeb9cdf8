// What a fuzz program consists of: a target, which parses one input and checks what must hold for every input, and what
// feeds it: libfuzzer.cpp for `./dev fuzz`, replay.cpp for the everyday tests.
//
// A target allows nothing but rondo::Error (or what its parser documents instead) to be thrown: anything else ends the
// program. It keeps no state from one input to the next.
#pragma once

#include <rondo/error.hpp>

#include "base/bytes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::fuzz {

using Bytes = std::vector<std::byte>;

// The target's. True if the input was well-formed.
bool parse(std::span<const std::byte> input);
// The target's: well-formed inputs to start from, made by the code under test where it can, so that they don't age.
std::vector<Bytes> seeds();

inline void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

// Whether `body` goes through without a rondo::Error of one of the codes (of any code, if none is named).
template <class Body>
bool accepts(Body&& body, std::initializer_list<ErrorCode> codes = {}) {
  try {
    body();
  } catch (const Error& error) {
    require(codes.size() == 0 || std::find(codes.begin(), codes.end(), error.code()) != codes.end(),
            "the error has a code that is documented");
    return false;
  }
  return true;
}

inline std::string text_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += static_cast<char>(b);
  return text;
}
inline Bytes bytes_of(std::string_view text) {
  const auto bytes = base::as_bytes(text);
  return {bytes.begin(), bytes.end()};
}
// An input whose first byte says what the rest is.
inline Bytes with_kind(char kind, std::span<const std::byte> rest) {
  base::ByteWriter input;
  return input.put(kind).put_raw(rest).take();
}
inline bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// Cuts an input into parts; past the end there are zeros and empty spans.
class Cutter {
 public:
  explicit Cutter(std::span<const std::byte> input) : rest_(input) {}
  std::uint8_t byte() {
    const auto part = take(1);
    return part.empty() ? std::uint8_t{0} : std::to_integer<std::uint8_t>(part[0]);
  }
  std::size_t two_bytes() {
    const std::size_t low = byte();
    return low | std::size_t{byte()} << 8;
  }
  std::span<const std::byte> take(std::size_t count) {
    const auto part = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(part.size());
    return part;
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

inline std::vector<std::string> lines_of(std::span<const std::byte> input) {
  std::vector<std::string> lines(1);
  for (const std::byte b : input) {
    if (b == std::byte{'\n'}) lines.emplace_back();
    else lines.back() += static_cast<char>(b);
  }
  return lines;
}

// "NAME=value" lines as an environment. As in a real one, nothing holds a zero byte.
inline std::map<std::string, std::string> environment_of(std::span<const std::byte> input) {
  std::map<std::string, std::string> variables;
  for (const std::string& whole : lines_of(input)) {
    const std::string line = whole.substr(0, whole.find('\0'));
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}
inline auto lookup_in(const std::map<std::string, std::string>& variables) {
  return [&variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

}  // namespace rondo::fuzz
