// The kernels of one instruction set, filled once for the machine: one file a type group writes its own rows.
//
// Tests fill further tables after restricting Highway's targets, to run every instruction set the machine has.
#pragma once

#include "executor/reduce/reduce.hpp"

namespace rondo::executor {

struct KernelTable {
  ReduceKernel kernels[data_type_count][reduce_op_count] = {};

  void set(DataType type, ReduceOp op, ReduceKernel kernel) {
    kernels[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)] = kernel;
  }
};

void fill_integer_kernels(KernelTable& table);
void fill_wide_float_kernels(KernelTable& table);
void fill_half_float_kernels(KernelTable& table);
void fill_float8_kernels(KernelTable& table);

// All of the above for the instruction set Highway has chosen.
KernelTable make_kernel_table();

// Copies with non-temporal stores, without the closing store fence.
using StreamCopy = void (*)(const void* source, void* destination, std::size_t bytes);
StreamCopy stream_copy();

}  // namespace rondo::executor
