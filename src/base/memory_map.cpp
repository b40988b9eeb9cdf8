#include "base/memory_map.hpp"

#include <rondo/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace rondo::base {
namespace {

// Closes on the way out unless released: for the steps between a descriptor and its SharedMemory.
class Guard {
 public:
  explicit Guard(int fd) : fd_(fd) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (fd_ >= 0) ::close(fd_);
  }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

[[noreturn]] void throw_system(const char* what, std::size_t bytes, int error) {
  throw Error(
      ErrorCode::system,
      fmt::format("{} for {} bytes of shared memory failed: {}", what, bytes, std::generic_category().message(error)),
      "check the memory limit of the container and `ulimit -v`; RONDO_FIFO_BYTES makes connections smaller");
}

}  // namespace

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

SharedMemory SharedMemory::create(const char* label, std::size_t bytes) {
  const std::size_t page = page_size();
  const std::size_t rounded = bytes == 0 ? page : (bytes + page - 1) / page * page;
  if (rounded < bytes) throw_system("rounding to a page", bytes, ENOMEM);
  const int fd = ::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) throw_system("memfd_create", rounded, errno);
  Guard guard(fd);
  if (::ftruncate(fd, static_cast<off_t>(rounded)) != 0) throw_system("ftruncate", rounded, errno);
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw_system("fcntl(F_ADD_SEALS)", rounded, errno);
  }
  void* data = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED) throw_system("mmap", rounded, errno);
  return {guard.release(), static_cast<std::byte*>(data), rounded};
}

SharedMemory SharedMemory::adopt(int fd, bool writable, int peer) {
  Guard guard(fd);
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_system("fstat", 0, errno);
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (!S_ISREG(status.st_mode) || status.st_size <= 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    throw Error(
        ErrorCode::transport,
        fmt::format("rank {} passed a descriptor that is no sealed shared memory (mode {:o}, {} bytes, seals {})", peer,
                    status.st_mode, status.st_size, seals),
        {}, peer);
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED) throw_system("mmap", bytes, errno);
  return {guard.release(), static_cast<std::byte*>(data), bytes};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
  close_descriptor();
}

void SharedMemory::close_descriptor() {
  if (forget_descriptor(fd_)) ::close(fd_);
  fd_ = -1;
}

void SharedMemory::advise_huge_pages() const { ::madvise(data_, bytes_, MADV_HUGEPAGE); }

}  // namespace rondo::base
