// Kernels of the integer types. Sum, product and the bitwise operators do not depend on the sign, so signed and
// unsigned share the product, and all six share the bitwise ones, as bytes.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "executor/reduce/kernel_table.hpp"
#include "executor/reduce/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executor/reduce/integers.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "executor/reduce/kernel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rondo::executor {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void set_rows(KernelTable& table, DataType type) {
  using Format = Native<T>;
  using Bytes = Native<std::uint8_t>;
  table.set(type, ReduceOp::sum, &Kernel<Format, Sum>::run);
  table.set(type, ReduceOp::avg, &Kernel<Format, Sum>::run_average);
  table.set(type, ReduceOp::prod, &Kernel<Native<hwy::MakeUnsigned<T>>, Prod>::run);
  table.set(type, ReduceOp::min, &Kernel<Format, Min>::run);
  table.set(type, ReduceOp::max, &Kernel<Format, Max>::run);
  table.set(type, ReduceOp::band, &Kernel<Bytes, BitAnd>::run_bytes<sizeof(T)>);
  table.set(type, ReduceOp::bor, &Kernel<Bytes, BitOr>::run_bytes<sizeof(T)>);
  table.set(type, ReduceOp::bxor, &Kernel<Bytes, BitXor>::run_bytes<sizeof(T)>);
}

void fill(KernelTable& table) {
  set_rows<std::int8_t>(table, DataType::int8);
  set_rows<std::uint8_t>(table, DataType::uint8);
  set_rows<std::int32_t>(table, DataType::int32);
  set_rows<std::uint32_t>(table, DataType::uint32);
  set_rows<std::int64_t>(table, DataType::int64);
  set_rows<std::uint64_t>(table, DataType::uint64);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rondo::executor
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::executor {
namespace {
HWY_EXPORT(fill);
}  // namespace

void fill_integer_kernels(KernelTable& table) { HWY_DYNAMIC_DISPATCH(fill)(table); }

}  // namespace rondo::executor
#endif
