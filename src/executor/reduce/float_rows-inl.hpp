// The rows of a floating-point type in the kernel table; compiled once for every instruction set.
#if defined(RONDO_EXECUTOR_REDUCE_FLOAT_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_EXECUTOR_REDUCE_FLOAT_ROWS_INL
#undef RONDO_EXECUTOR_REDUCE_FLOAT_ROWS_INL
#else
#define RONDO_EXECUTOR_REDUCE_FLOAT_ROWS_INL
#endif

#include <hwy/highway.h>

#include "executor/reduce/kernel-inl.hpp"
#include "executor/reduce/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace rondo::executor {
namespace HWY_NAMESPACE {

template <class Format>
void scaled_sum(const ReduceArguments& a) {
  if (a.scaled == nullptr) return Kernel<Format, Sum>::run(a);
  Kernel<Format, Sum, true>::run(a);
}

template <class Format>
void set_float_rows(KernelTable& table, DataType type) {
  table.set(type, ReduceOp::sum, &Kernel<Format, Sum>::run);
  table.set(type, ReduceOp::avg, &Kernel<Format, Sum>::run_average);
  table.set(type, ReduceOp::prod, &Kernel<Format, Prod>::run);
  table.set(type, ReduceOp::min, &Kernel<Format, Min>::run);
  table.set(type, ReduceOp::max, &Kernel<Format, Max>::run);
  table.set(type, ReduceOp::scaled_sum, &scaled_sum<Format>);
}

}  // namespace HWY_NAMESPACE
}  // namespace rondo::executor
HWY_AFTER_NAMESPACE();

#endif
