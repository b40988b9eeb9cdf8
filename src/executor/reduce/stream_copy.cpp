// Copies with non-temporal stores, and the name of the instruction set.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "executor/reduce/kernel_table.hpp"
#include "executor/reduce/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executor/reduce/stream_copy.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::executor {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Without a fence: the caller copies in pieces and fences once.
void stream_bytes(const void* source, void* destination, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::size_t width = HWY_LANES(std::uint8_t);
  const auto* from = static_cast<const std::uint8_t*>(source);
  auto* to = static_cast<std::uint8_t*>(destination);
  const std::size_t begin = (0 - reinterpret_cast<std::uintptr_t>(destination)) % 64;
  if (width < 16 || bytes < begin + 4 * width) {
    std::memcpy(destination, source, bytes);
    return;
  }
  std::memcpy(to, from, begin);
  std::size_t i = begin;
  for (; i + 4 * width <= bytes; i += 4 * width) {
    const auto a = hn::LoadU(d, from + i), b = hn::LoadU(d, from + i + width);
    const auto c = hn::LoadU(d, from + i + 2 * width), e = hn::LoadU(d, from + i + 3 * width);
    hn::Stream(a, d, to + i);
    hn::Stream(b, d, to + i + width);
    hn::Stream(c, d, to + i + 2 * width);
    hn::Stream(e, d, to + i + 3 * width);
  }
  std::memcpy(to + i, from + i, bytes - i);
}

StreamCopy get_stream_copy() { return &stream_bytes; }
const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rondo::executor
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::executor {
namespace {
HWY_EXPORT(get_stream_copy);
HWY_EXPORT(target_name);
}  // namespace

StreamCopy stream_copy() { return HWY_DYNAMIC_DISPATCH(get_stream_copy)(); }
const char* instruction_set() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace rondo::executor
#endif
