// The instruction sets the reductions are compiled for; included before any Highway header, in every file that has one.
//
// Each further target costs a full compilation of all kernels and brings nothing measurable here: SSSE3 machines are
// gone, AVX3_DL and SVE only help operations that reductions do not use.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
