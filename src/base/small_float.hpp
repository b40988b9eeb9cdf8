// Scalar conversions of the small floating-point types: the reference that vector code must equal bit for bit.
//
// Round to nearest, ties to even. float16 and float8_e5m2 overflow to infinity; float8_e4m3 saturates to +-448 (also
// from infinity); NaN stays NaN. Source of the 8-bit formats: OCP 8-bit Floating Point Specification, revision 1.0.
#pragma once

#include <rondo/types.hpp>

namespace rondo::base {

float to_float(float16 value);
float to_float(bfloat16 value);
float to_float(float8_e4m3 value);
float to_float(float8_e5m2 value);
float16 to_float16(float value);
bfloat16 to_bfloat16(float value);
float8_e4m3 to_float8_e4m3(float value);
float8_e5m2 to_float8_e5m2(float value);

}  // namespace rondo::base
