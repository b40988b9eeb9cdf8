// Reductions and copies on the CPU: the only place where elements are computed.
//
// One call takes any number of sources, combines them element by element in the order given (the order of reduction),
// and writes the result to any number of destinations. Vectorised with Highway, dispatched at run time to the best
// instruction set of this machine. 16- and 8-bit floats are combined in fp32 and rounded once (to nearest even; e4m3
// saturates) at the end of the call. Integer sums and products wrap. min and max of floats: NaN if any source is NaN.
// Pure functions of their arguments; any thread; never throw.
//
// Sources may be equal to destinations (in place), but not overlap them otherwise. No alignment is needed beyond the
// element's own... and not even that: pointers may be arbitrary bytes addresses.
#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <cstdint>

namespace rondo::executor {

struct ReduceArguments {
  const void* const* sources = nullptr;
  std::size_t source_count = 0;  // >= 1
  void* const* destinations = nullptr;
  std::size_t destination_count = 0;  // >= 1
  std::size_t count = 0;              // elements
  // scaled_sum: sources[i] is multiplied by `factor` first where scaled[i] != 0; null: none.
  const std::uint8_t* scaled = nullptr;
  double factor = 1.0;
  // avg: the combined value is divided by this at the end; 1: not at all. Integers: the wrapped sum is divided,
  // rounding towards zero.
  std::uint32_t divisor = 1;
  // destinations[0] is written with non-temporal stores (for large user buffers that will not be read soon).
  bool stream_first_destination = false;
};

using ReduceKernel = void (*)(const ReduceArguments&);

// The kernel for a type and operator; null for a pair that does not exist (bitwise on floats, scaled_sum on integers).
ReduceKernel reduce_kernel(DataType type, ReduceOp op);

// Copies `bytes` from `source` to each destination; regions don't overlap unless equal.
void copy(const void* source, void* const* destinations, std::size_t destination_count, std::size_t bytes,
          bool stream_first_destination);
// One destination, small or large; inlined for tiny sizes by callers.
void copy(const void* source, void* destination, std::size_t bytes, bool stream);

// "AVX3", "AVX2", "SSE4", "NEON" ...: the instruction set chosen on this machine.
const char* instruction_set();

}  // namespace rondo::executor
