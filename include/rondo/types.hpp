// Element types, reduction operators and collectives: the vocabulary of every call.
//
// Values only; nothing here allocates, throws or depends on another header of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rondo {

// The type of one element. 16- and 8-bit floating-point types are storage: sums are formed in 32 bits within a step.
enum class DataType : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  float8_e4m3,  // OCP 8-bit, no infinity; values out of range saturate to +-448
  float8_e5m2,
};
inline constexpr int data_type_count = 12;

// How contributions are combined. band, bor and bxor are for integers only. avg divides the sum by the number of ranks
// (integers: the wrapped sum, rounded towards zero). scaled_sum multiplies each rank's contribution by that rank's
// factor first (see Reduction); floating-point types only.
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg, scaled_sum, band, bor, bxor };
inline constexpr int reduce_op_count = 9;

// A reduction operator with its factor; converts from ReduceOp. The factor counts for scaled_sum only and may differ
// between ranks.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double factor = 1.0;
  constexpr Reduction() = default;
  constexpr Reduction(ReduceOp o) : op(o) {}  // NOLINT(google-explicit-constructor): a ReduceOp is a Reduction
  constexpr Reduction(ReduceOp o, double f) : op(o), factor(f) {}
};
// sum over ranks of factor(rank) * contribution(rank).
constexpr Reduction scaled_sum(double factor) { return {ReduceOp::scaled_sum, factor}; }

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  barrier,
  all_gather_v,
  reduce_scatter_v,
  all_to_all_v,
  gather_v,
  scatter_v,
  send,
  receive,
};
inline constexpr int collective_count = 16;

// Bytes of one element; 0 for what is no DataType.
constexpr std::size_t size_of(DataType type) {
  constexpr std::uint8_t sizes[data_type_count] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};
  const auto i = static_cast<std::size_t>(type);
  return i < data_type_count ? sizes[i] : 0;
}
constexpr bool is_integer(DataType type) { return type <= DataType::uint64; }
constexpr bool is_bitwise(ReduceOp op) { return op >= ReduceOp::band; }

// Names as printed in tables and error texts ("float32", "scaled_sum", "all_reduce").
constexpr std::string_view name_of(DataType type) {
  constexpr std::string_view names[] = {"int8",    "uint8",    "int32",   "uint32",  "int64",       "uint64",
                                        "float16", "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2"};
  const auto i = static_cast<std::size_t>(type);
  return i < data_type_count ? names[i] : "unknown type";
}
constexpr std::string_view name_of(ReduceOp op) {
  constexpr std::string_view names[] = {"sum", "prod", "min", "max", "avg", "scaled_sum", "band", "bor", "bxor"};
  const auto i = static_cast<std::size_t>(op);
  return i < reduce_op_count ? names[i] : "unknown operator";
}
constexpr std::string_view name_of(Collective collective) {
  constexpr std::string_view names[] = {
      "all_reduce", "all_gather",   "reduce_scatter",   "broadcast",    "reduce",   "all_to_all", "gather", "scatter",
      "barrier",    "all_gather_v", "reduce_scatter_v", "all_to_all_v", "gather_v", "scatter_v",  "send",   "receive"};
  const auto i = static_cast<std::size_t>(collective);
  return i < collective_count ? names[i] : "unknown collective";
}

// Storage types for the small floats: bits only, so that a std::span of them carries its DataType.
struct float16 {
  std::uint16_t bits;
};
struct bfloat16 {
  std::uint16_t bits;
};
struct float8_e4m3 {
  std::uint8_t bits;
};
struct float8_e5m2 {
  std::uint8_t bits;
};

template <class T>
struct DataTypeOf;
template <>
struct DataTypeOf<std::int8_t> {
  static constexpr DataType value = DataType::int8;
};
template <>
struct DataTypeOf<std::uint8_t> {
  static constexpr DataType value = DataType::uint8;
};
template <>
struct DataTypeOf<std::int32_t> {
  static constexpr DataType value = DataType::int32;
};
template <>
struct DataTypeOf<std::uint32_t> {
  static constexpr DataType value = DataType::uint32;
};
template <>
struct DataTypeOf<std::int64_t> {
  static constexpr DataType value = DataType::int64;
};
template <>
struct DataTypeOf<std::uint64_t> {
  static constexpr DataType value = DataType::uint64;
};
template <>
struct DataTypeOf<float16> {
  static constexpr DataType value = DataType::float16;
};
template <>
struct DataTypeOf<bfloat16> {
  static constexpr DataType value = DataType::bfloat16;
};
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::float32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::float64;
};
template <>
struct DataTypeOf<float8_e4m3> {
  static constexpr DataType value = DataType::float8_e4m3;
};
template <>
struct DataTypeOf<float8_e5m2> {
  static constexpr DataType value = DataType::float8_e5m2;
};
template <class T>
inline constexpr DataType data_type_of = DataTypeOf<T>::value;

}  // namespace rondo
