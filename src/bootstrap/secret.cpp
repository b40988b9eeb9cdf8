#include "bootstrap/secret.hpp"

#include <rondo/error.hpp>

#include "base/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace rondo::bootstrap {

namespace {

constexpr std::size_t most_secret_bytes = 1 << 16;

[[noreturn]] void refuse_system(const std::string& path, std::string_view call, int error) {
  throw Error(ErrorCode::system, fmt::format("{} of {} failed: {}", call, path, std::generic_category().message(error)),
              "give a key with RONDO_SECRET_FILE=/path/to/file");
}

void start_sodium() {
  if (sodium_init() < 0) throw Error(ErrorCode::system, "libsodium could not be initialised: no random numbers");
}

std::vector<std::uint8_t> read_private_file(const std::string& path, std::string_view who) {
  // Opened first and judged by its descriptor, so that nothing can be put in its place between the two. No waiting for
  // a FIFO's writer.
  const base::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) {
    throw Error(ErrorCode::configuration,
                fmt::format("{}={} cannot be opened: {}", who, path, std::generic_category().message(errno)),
                fmt::format("make one with: (umask 077; head -c 32 /dev/urandom > {})", path));
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0) refuse_system(path, "fstat", errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::configuration, fmt::format("{}={} is no regular file", who, path),
                "give a regular file of 32 bytes or more");
  }
  if (status.st_uid != geteuid()) {
    throw Error(ErrorCode::configuration,
                fmt::format("{}={} belongs to user {}, not to {} who runs this", who, path, status.st_uid, geteuid()),
                "give a file of your own");
  }
  if ((status.st_mode & 077U) != 0) {
    throw Error(
        ErrorCode::configuration,
        fmt::format("{}={} has mode {:04o}: others can use it; it must be 0600", who, path, status.st_mode & 07777U),
        fmt::format("chmod 600 {}", path));
  }
  std::vector<std::uint8_t> bytes(most_secret_bytes + 1);
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_system(path, "read", errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size < least_secret_bytes || size > most_secret_bytes) {
    throw Error(
        ErrorCode::configuration,
        fmt::format("{}={} holds {} bytes{}; a key has {} to {}", who, path, size > most_secret_bytes ? size - 1 : size,
                    size > most_secret_bytes ? " or more" : "", least_secret_bytes, most_secret_bytes),
        fmt::format("make one with: (umask 077; head -c 32 /dev/urandom > {})", path));
  }
  bytes.resize(size);
  return bytes;
}

void make_private_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) refuse_system(path, "mkdir", errno);
  struct stat status {};
  // lstat: a symbolic link that somebody else put there is not followed.
  if (lstat(path.c_str(), &status) != 0) refuse_system(path, "lstat", errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077U) != 0) {
    throw Error(ErrorCode::configuration,
                fmt::format("{} must be a directory of user {} with mode 0700, but is {} of user {} with mode {:04o}",
                            path, geteuid(), S_ISDIR(status.st_mode) ? "one" : "something else", status.st_uid,
                            status.st_mode & 07777U),
                "remove it, or give a key with RONDO_SECRET_FILE=/path/to/file");
  }
}

}  // namespace

std::vector<std::uint8_t> read_secret_file(const std::string& path) {
  return read_private_file(path, "RONDO_SECRET_FILE");
}

std::string user_secret_directory(const std::string& runtime_directory) {
  if (!runtime_directory.empty()) return runtime_directory + "/rondo";
  return fmt::format("/tmp/rondo-{}", geteuid());
}

std::vector<std::uint8_t> user_secret(const std::string& directory) {
  start_sodium();
  make_private_directory(directory);
  const std::string path = directory + "/key";
  if (access(path.c_str(), F_OK) != 0) {
    std::array<std::uint8_t, 8> tag{};
    randombytes_buf(tag.data(), tag.size());
    std::string fresh = path + ".";
    for (const std::uint8_t byte : tag) fresh += fmt::format("{:02x}", byte);
    {
      const base::FileDescriptor file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (!file) refuse_system(fresh, "open", errno);
      std::array<std::uint8_t, least_secret_bytes> bytes{};
      randombytes_buf(bytes.data(), bytes.size());
      const ssize_t written = write(file.get(), bytes.data(), bytes.size());
      const int error = errno;
      sodium_memzero(bytes.data(), bytes.size());
      if (written != static_cast<ssize_t>(bytes.size())) {
        unlink(fresh.c_str());
        refuse_system(fresh, "write", written < 0 ? error : ENOSPC);
      }
    }
    // link() fails if the name is taken: of several processes one wins, and no one ever sees half a key.
    const int linked = link(fresh.c_str(), path.c_str());
    const int error = errno;
    unlink(fresh.c_str());
    if (linked != 0 && error != EEXIST) refuse_system(path, "link", error);
  }
  return read_private_file(path, "the key file");
}

Key derive_key(const std::vector<std::uint8_t>& secret, std::string_view job) {
  start_sodium();
  std::array<std::uint8_t, 32> seed{};
  crypto_generichash(seed.data(), seed.size(), secret.data(), secret.size(), nullptr, 0);
  Key key{};
  crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(job.data()), job.size(),
                     seed.data(), seed.size());
  sodium_memzero(seed.data(), seed.size());
  return key;
}

}  // namespace rondo::bootstrap
