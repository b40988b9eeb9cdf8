// Kernels of float16 and bfloat16, computed in float32.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "executor/reduce/kernel_table.hpp"
#include "executor/reduce/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executor/reduce/half_floats.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "executor/reduce/float_rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rondo::executor {
namespace HWY_NAMESPACE {
namespace {

void fill(KernelTable& table) {
  set_float_rows<Float16>(table, DataType::float16);
  set_float_rows<Bfloat16>(table, DataType::bfloat16);
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

void fill_half_float_kernels(KernelTable& table) { HWY_DYNAMIC_DISPATCH(fill)(table); }

}  // namespace rondo::executor
#endif
