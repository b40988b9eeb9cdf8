#include "transports/sim/fiber_stack.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace rondo::transport::sim {
namespace {

constexpr std::size_t guard_bytes = 4096;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t stack_bytes = 1024 * 1024;  // instrumented frames are several times larger
#else
constexpr std::size_t stack_bytes = 256 * 1024;
#endif

}  // namespace

FiberStack::FiberStack() {
  void* memory = ::mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::system, fmt::format("mmap of a fiber's stack of {} bytes: {}", stack_bytes,
                                               std::generic_category().message(errno)));
  }
  memory_ = static_cast<std::byte*>(memory);
  if (::mprotect(memory_, guard_bytes, PROT_NONE) != 0) {
    const int error = errno;
    ::munmap(memory_, guard_bytes + stack_bytes);
    throw Error(ErrorCode::system,
                fmt::format("mprotect of a fiber's guard page: {}", std::generic_category().message(error)));
  }
}
FiberStack::FiberStack(FiberStack&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
FiberStack& FiberStack::operator=(FiberStack&& other) noexcept {
  std::swap(memory_, other.memory_);
  return *this;
}
FiberStack::~FiberStack() {
  if (memory_ != nullptr) ::munmap(memory_, guard_bytes + stack_bytes);
}
std::byte* FiberStack::bottom() const { return memory_ + guard_bytes; }
std::size_t FiberStack::bytes() { return stack_bytes; }

FiberStack FiberStackPool::take() {
  if (idle_.empty()) return {};
  FiberStack stack = std::move(idle_.back());
  idle_.pop_back();
  return stack;
}

}  // namespace rondo::transport::sim
