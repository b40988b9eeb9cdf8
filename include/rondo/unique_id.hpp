// UniqueId: the 128 bytes that let ranks find each other and prove that they belong together.
//
// Exactly one process makes it (UniqueId::create starts the rendezvous in that process, which must stay alive until all
// ranks have joined); the others get the bytes over any channel that outsiders cannot read, for it carries the key.
#pragma once

#include <rondo/export.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace rondo {

struct RONDO_API UniqueId {
  std::array<std::byte, 128> bytes{};

  // Starts a rendezvous on every usable address of this host and returns how to reach it.
  static UniqueId create();
  // 256 hexadecimal digits. from_string throws Error(invalid_argument) on anything else.
  std::string to_string() const;
  static UniqueId from_string(std::string_view text);
};

}  // namespace rondo
