// Secrets on disk, from which the ranks of a job that no launcher of ours started derive their common key.
//
// Files are trusted only if this user owns them and nobody else may read or write them. Errors are
// Error(configuration) with the command that puts it right, or Error(system). Any thread.
#pragma once

#include "bootstrap/key.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::bootstrap {

inline constexpr std::size_t least_secret_bytes = 32;

// The bytes of a file that the user gave (RONDO_SECRET_FILE): a regular file, mode 0600 or less, 32 bytes or more.
std::vector<std::uint8_t> read_secret_file(const std::string& path);

// The key that all processes of this user on this host share: made at the first call, in `directory`, which is made
// too (0700). Several processes may call it at once: all get the same bytes.
std::vector<std::uint8_t> user_secret(const std::string& directory);
// $XDG_RUNTIME_DIR/rondo if that is set (`runtime_directory`, may be empty), else /tmp/rondo-<user id>.
std::string user_secret_directory(const std::string& runtime_directory);

// The key of one job: the same secret and job give the same key; different jobs' keys say nothing about each other.
Key derive_key(const std::vector<std::uint8_t>& secret, std::string_view job);

}  // namespace rondo::bootstrap
