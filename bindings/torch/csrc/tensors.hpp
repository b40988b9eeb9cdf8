// What the core sees of a tensor: an address, elements of a DataType, and a reduction that gives what torch promises.
//
// Pure functions of tensors; errors are torch's ValueError and TypeError.
#pragma once

#include <rondo/types.hpp>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace rondo_torch {

struct Elements {
  void* data = nullptr;
  std::size_t count = 0;
  rondo::DataType type = rondo::DataType::uint8;
};

// A dense CPU tensor, or an error that says what is wrong with it.
void check_tensor(std::string_view call, const at::Tensor& tensor);
const at::Tensor& only_tensor(std::string_view call, const std::vector<at::Tensor>& tensors);
void check_same_type(std::string_view call, const at::Tensor& expected, const at::Tensor& tensor);

// Elements to be copied: any type; those the core has no name for travel as bytes.
Elements to_copy(const at::Tensor& contiguous);

struct ReduceCall {
  Elements elements;
  rondo::Reduction op;
};
// Elements to be reduced. bool reduces as torch's logic (sum and max: or; product and min: and); complex sums and
// averages as pairs. Throws for what has no exact meaning in the core.
ReduceCall to_reduce(std::string_view call, const at::Tensor& contiguous, const c10d::ReduceOp& op);

// Contiguous memory with a tensor's values, for the core to read, write or both; what was written reaches the tensor
// when `finish` is called.
class Staging {
 public:
  at::Tensor read(const at::Tensor& tensor);
  at::Tensor write(const at::Tensor& tensor);
  at::Tensor update(const at::Tensor& tensor);
  // All tensors back to back, in order: where they are if they lie so already, else in one buffer.
  at::Tensor read_all(const std::vector<at::Tensor>& tensors);
  at::Tensor write_all(const std::vector<at::Tensor>& tensors);

  // `input` itself, or a copy if it shares memory with `output` in another way than the core's in-place form, in which
  // it starts `in_place` bytes behind the output (nullopt: there is no such form).
  at::Tensor apart(const at::Tensor& input, const at::Tensor& output, std::optional<std::int64_t> in_place);

  // All tensors that must live until the operation has ended.
  const std::vector<at::Tensor>& alive() const { return alive_; }
  std::vector<std::function<void()>> take_finish() { return std::move(finish_); }

 private:
  std::vector<at::Tensor> alive_;
  std::vector<std::function<void()>> finish_;
};

}  // namespace rondo_torch
