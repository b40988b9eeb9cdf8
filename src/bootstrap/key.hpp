// Key: the 256-bit secret that a world's ranks share.
#pragma once

#include <array>
#include <cstdint>

namespace rondo::bootstrap {

using Key = std::array<std::uint8_t, 32>;

}  // namespace rondo::bootstrap
