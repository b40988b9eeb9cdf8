// ByteWriter and ByteReader: frames and tables as little-endian bytes, with every bound checked.
//
// Values; one thread at a time. A reader never allocates more than the bytes it was given, so a length that a hostile
// peer made up costs nothing. It throws Error(transport) at the first read past the end; callers who want to name the
// sender catch it and say who.
#pragma once

#include <rondo/error.hpp>

#include <fmt/format.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo::base {

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

class ByteWriter {
 public:
  ByteWriter() = default;

  // Two's complement, little-endian.
  template <class T>
  requires std::integral<T> || std::is_enum_v<T> ByteWriter& put(T value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<std::byte>((bits >> (8 * i)) & 0xff));
    return *this;
  }
  // The bytes alone: the reader must know how many.
  ByteWriter& put_raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  // A 32-bit length and the bytes.
  ByteWriter& put_bytes(std::span<const std::byte> bytes) {
    if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a block of {} bytes does not fit a frame; at most 4294967295 do", bytes.size()));
    }
    put(static_cast<std::uint32_t>(bytes.size()));
    return put_raw(bytes);
  }
  ByteWriter& put_string(std::string_view text) { return put_bytes(as_bytes(text)); }

  std::size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const& { return bytes_; }
  std::vector<std::byte> take() { return std::exchange(bytes_, {}); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  // The bytes must outlive the reader and every span it returned.
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  requires std::integral<T> || std::is_enum_v<T> T get() {
    const auto raw = get_raw(sizeof(T));
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) bits |= std::to_integer<std::uint64_t>(raw[i]) << (8 * i);
    return static_cast<T>(bits);
  }
  std::span<const std::byte> get_raw(std::size_t count) {
    if (count > rest_.size()) {
      throw Error(ErrorCode::transport, fmt::format("malformed frame: {} bytes wanted, {} left", count, rest_.size()));
    }
    const auto bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }
  std::span<const std::byte> get_bytes() { return get_raw(get<std::uint32_t>()); }
  std::string get_string() {
    const auto bytes = get_bytes();
    return bytes.empty() ? std::string() : std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  // How many elements follow, each of at least `least` bytes: refuses a count that cannot fit in what is left.
  std::size_t get_count(std::size_t least) {
    const std::size_t count = get<std::uint32_t>();
    if (least != 0 && count > rest_.size() / least) {
      throw Error(ErrorCode::transport,
                  fmt::format("malformed frame: {} elements of {} bytes or more announced, {} bytes left", count, least,
                              rest_.size()));
    }
    return count;
  }

  std::span<const std::byte> rest() const { return rest_; }
  std::size_t left() const { return rest_.size(); }
  // A frame with bytes behind its end is no frame of ours.
  void expect_end() const {
    if (!rest_.empty()) {
      throw Error(ErrorCode::transport, fmt::format("malformed frame: {} bytes behind its end", rest_.size()));
    }
  }

 private:
  std::span<const std::byte> rest_;
};

// A newer peer's code that this version does not have counts as internal.
inline ErrorCode get_error_code(ByteReader& reader) {
  const auto raw = reader.get<std::uint8_t>();
  return raw <= static_cast<std::uint8_t>(ErrorCode::internal) ? static_cast<ErrorCode>(raw) : ErrorCode::internal;
}

}  // namespace rondo::base
