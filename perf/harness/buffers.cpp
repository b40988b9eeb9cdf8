#include "perf/harness/buffers.hpp"

#include <fmt/format.h>
#include <cstring>

namespace rondo::perf {

Buffer::Buffer(Communicator& communicator, std::size_t bytes, bool window) {
  if (window) {
    window_ = communicator.allocate_bytes(bytes);
  } else {
    plain_.reset(static_cast<std::byte*>(::operator new(bytes, page, std::nothrow)));
    if (!plain_) {
      throw Error(ErrorCode::system, fmt::format("a buffer of {} bytes cannot be allocated", bytes),
                  "each rank has two of the largest size: lower -e, for example -e 64M");
    }
  }
  std::memset(data(), 0, bytes);
}

}  // namespace rondo::perf
