#pragma once

#include <rondo/export.hpp>

#define RONDO_VERSION_MAJOR 0
#define RONDO_VERSION_MINOR 1
#define RONDO_VERSION_PATCH 0

namespace rondo {
// "0.1.0": the library that is running, which may differ from the headers compiled against.
RONDO_API const char* version() noexcept;
}  // namespace rondo
