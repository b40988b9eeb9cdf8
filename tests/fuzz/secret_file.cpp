// Files with a key. The input is such a file: two bytes of mode, then what it holds.
#include "bootstrap/secret.hpp"

#include "base/socket.hpp"
#include "harness/target.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rondo::fuzz {

std::vector<Bytes> seeds() {
  Bytes input = {std::byte{0x80}, std::byte{0x01}};  // 0600
  input.resize(2 + 40, std::byte{7});
  return {input};
}

bool parse(std::span<const std::byte> input) {
  Cutter cut(input);
  const auto mode = static_cast<mode_t>(cut.two_bytes() & 0777U) | 0400U;
  const auto content = cut.rest();
  const base::FileDescriptor file(::memfd_create("secret", MFD_CLOEXEC));
  require(static_cast<bool>(file) &&
              ::write(file.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()),
          "a file in memory");
  require(::fchmod(file.get(), mode) == 0, "fchmod");
  const bool good = accepts(
      [&] {
        const auto secret = bootstrap::read_secret_file("/proc/self/fd/" + std::to_string(file.get()));
        require(same(std::as_bytes(std::span(secret)), content), "a secret is all bytes of its file");
        const auto key = bootstrap::derive_key(secret, "a job");
        require(key == bootstrap::derive_key(secret, "a job"), "the same secret and job give the same key");
        require(key != bootstrap::derive_key(secret, "another"), "another job has another key");
      },
      {ErrorCode::configuration});
  require(good == ((mode & 077U) == 0 && content.size() >= 32 && content.size() <= 65536),
          "a secret is private and of the right length");
  return good;
}

}  // namespace rondo::fuzz
