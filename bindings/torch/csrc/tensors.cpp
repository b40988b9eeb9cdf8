#include "tensors.hpp"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include <optional>
#include <string>
#include <utility>

namespace rondo_torch {
namespace {

using rondo::DataType;

std::optional<DataType> data_type(at::ScalarType type) {
  switch (type) {
    case at::kChar: return DataType::int8;
    case at::kByte: return DataType::uint8;
    case at::kInt: return DataType::int32;
    case at::kUInt32: return DataType::uint32;
    case at::kLong: return DataType::int64;
    case at::kUInt64: return DataType::uint64;
    case at::kHalf: return DataType::float16;
    case at::kBFloat16: return DataType::bfloat16;
    case at::kFloat: return DataType::float32;
    case at::kDouble: return DataType::float64;
    case at::kFloat8_e4m3fn: return DataType::float8_e4m3;
    case at::kFloat8_e5m2: return DataType::float8_e5m2;
    default: return std::nullopt;
  }
}

bool is_plain(const at::Tensor& tensor) { return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg(); }

const char* name_of(const c10d::ReduceOp& op) {
  static constexpr const char* names[] = {"SUM",  "AVG", "PRODUCT", "MIN",        "MAX",
                                          "BAND", "BOR", "BXOR",    "PREMUL_SUM", "UNUSED"};
  return names[static_cast<std::size_t>(op.op_) % std::size(names)];
}

double factor_of(const c10d::ReduceOp& op) {
  const auto* supplement = dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr, "PREMUL_SUM without a factor: make it with _make_premul_sum(factor)");
  return supplement->tensor_factor.defined() ? supplement->tensor_factor.item<double>() : supplement->double_factor;
}

rondo::Reduction reduction(std::string_view call, const at::Tensor& tensor, const c10d::ReduceOp& op) {
  using rondo::ReduceOp;
  const bool is_bool = tensor.scalar_type() == at::kBool;
  const bool is_complex = tensor.is_complex();
  const auto refuse = [&](const char* why) {
    TORCH_CHECK_VALUE(false, "rondo: ", call, ": ", name_of(op), " of ", tensor.scalar_type(), ": ", why);
  };
  switch (op.op_) {
    case c10d::ReduceOp::SUM: return is_bool ? ReduceOp::max : ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      if (is_bool) refuse("a truth value has no average; convert it to a number");
      return ReduceOp::avg;
    case c10d::ReduceOp::PRODUCT:
      if (is_complex) refuse("complex numbers can be summed and averaged only");
      return is_bool ? ReduceOp::min : ReduceOp::prod;
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::MAX:
      if (is_complex) refuse("complex numbers have no order");
      return op.op_ == c10d::ReduceOp::MIN ? ReduceOp::min : ReduceOp::max;
    case c10d::ReduceOp::BAND:
    case c10d::ReduceOp::BOR:
    case c10d::ReduceOp::BXOR:
      if (tensor.is_floating_point() || is_complex) refuse("bits can be combined for integers only");
      return op.op_ == c10d::ReduceOp::BAND  ? ReduceOp::band
             : op.op_ == c10d::ReduceOp::BOR ? ReduceOp::bor
                                             : ReduceOp::bxor;
    case c10d::ReduceOp::PREMUL_SUM:
      if (!tensor.is_floating_point() && !is_complex) refuse("a factor needs floating-point numbers");
      return rondo::scaled_sum(factor_of(op));
    default: refuse("there is no such operator"); return {};
  }
}

// The tensors as one, if they lie back to back in one storage already, as the pieces of chunk() and split() do.
std::optional<at::Tensor> as_one(const std::vector<at::Tensor>& tensors) {
  const at::Tensor& first = tensors[0];
  std::int64_t count = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!is_plain(tensor) || !tensor.is_alias_of(first)) return std::nullopt;
    if (tensor.storage_offset() != first.storage_offset() + count) return std::nullopt;
    count += tensor.numel();
  }
  return first.detach().as_strided({count}, {1}, first.storage_offset());
}

// Before anything is sent: torch's own copy would refuse it only afterwards.
void check_writable(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(at::has_internal_overlap(tensor) != at::MemOverlap::Yes,
                    "rondo: a tensor that is to be written holds several elements in one place (shape ", tensor.sizes(),
                    ", strides ", tensor.strides(), "); clone() it first");
}

}  // namespace

void check_tensor(std::string_view call, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), "rondo: ", call, ": a tensor is undefined");
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "rondo: ", call, ": the tensor's layout is ", tensor.layout(),
                    "; use a dense tensor (to_dense())");
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), "rondo: ", call, ": the tensor is on ", tensor.device(),
                    "; this backend serves CPU tensors");
}

const at::Tensor& only_tensor(std::string_view call, const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "rondo: ", call, ": ", tensors.size(),
                    " tensors were given; each rank gives exactly 1");
  check_tensor(call, tensors[0]);
  return tensors[0];
}

void check_same_type(std::string_view call, const at::Tensor& expected, const at::Tensor& tensor) {
  check_tensor(call, tensor);
  TORCH_CHECK_TYPE(tensor.scalar_type() == expected.scalar_type(), "rondo: ", call, ": tensors of ",
                   expected.scalar_type(), " and ", tensor.scalar_type(), " in one call; use one type");
}

Elements to_copy(const at::Tensor& contiguous) {
  const auto count = static_cast<std::size_t>(contiguous.numel());
  void* data = count == 0 ? nullptr : contiguous.data_ptr();
  if (const auto type = data_type(contiguous.scalar_type())) return {data, count, *type};
  return {data, count * contiguous.element_size(), DataType::uint8};
}

ReduceCall to_reduce(std::string_view call, const at::Tensor& contiguous, const c10d::ReduceOp& op) {
  const rondo::Reduction how = reduction(call, contiguous, op);
  Elements elements = to_copy(contiguous);
  const at::ScalarType type = contiguous.scalar_type();
  if (type == at::kComplexFloat || type == at::kComplexDouble) {
    elements.count = static_cast<std::size_t>(contiguous.numel()) * 2;
    elements.type = type == at::kComplexFloat ? DataType::float32 : DataType::float64;
  } else if (type != at::kBool) {
    TORCH_CHECK_TYPE(data_type(type).has_value(), "rondo: ", call, ": tensors of ", type,
                     " can be moved but not reduced; convert to int32, int64 or a floating-point type");
  }
  return {elements, how};
}

at::Tensor Staging::read(const at::Tensor& tensor) {
  at::Tensor plain = is_plain(tensor) ? tensor : tensor.resolve_conj().resolve_neg().contiguous();
  alive_.push_back(plain);
  return plain;
}

at::Tensor Staging::write(const at::Tensor& tensor) {
  check_writable(tensor);
  at::Tensor plain = is_plain(tensor)
                         ? tensor
                         : at::empty(tensor.sizes(), tensor.options().memory_format(at::MemoryFormat::Contiguous));
  alive_.push_back(plain);
  if (!plain.is_same(tensor)) finish_.emplace_back([tensor, plain] { tensor.detach().copy_(plain); });
  return plain;
}

at::Tensor Staging::update(const at::Tensor& tensor) {
  check_writable(tensor);
  at::Tensor plain = read(tensor);
  if (!plain.is_same(tensor)) finish_.emplace_back([tensor, plain] { tensor.detach().copy_(plain); });
  return plain;
}

at::Tensor Staging::apart(const at::Tensor& input, const at::Tensor& output, std::optional<std::int64_t> in_place) {
  if (input.numel() == 0 || output.numel() == 0) return input;
  const auto* in = static_cast<const std::byte*>(input.const_data_ptr());
  const auto* out = static_cast<const std::byte*>(output.const_data_ptr());
  const bool shares = in < out + output.nbytes() && out < in + input.nbytes();
  if (!shares || (in_place && in == out + *in_place)) return input;
  return alive_.emplace_back(input.clone());
}

at::Tensor Staging::read_all(const std::vector<at::Tensor>& tensors) {
  if (const auto one = as_one(tensors)) return alive_.emplace_back(*one);
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.detach().resolve_conj().resolve_neg().reshape({-1}));
  at::Tensor all = at::cat(flat);
  alive_.push_back(all);
  return all;
}

at::Tensor Staging::write_all(const std::vector<at::Tensor>& tensors) {
  if (const auto one = as_one(tensors)) return alive_.emplace_back(*one);
  std::int64_t count = 0;
  for (const at::Tensor& tensor : tensors) {
    check_writable(tensor);
    count += tensor.numel();
  }
  at::Tensor all = at::empty({count}, tensors[0].options().memory_format(at::MemoryFormat::Contiguous));
  alive_.push_back(all);
  finish_.emplace_back([all, tensors] {
    std::int64_t at = 0;
    for (const at::Tensor& tensor : tensors) {
      tensor.detach().copy_(all.narrow(0, at, tensor.numel()).view(tensor.sizes()));
      at += tensor.numel();
    }
  });
  return all;
}

}  // namespace rondo_torch
