// Each collective: refuses what cannot be right, finds the contiguous memory, and names the core's call.
#include "backend.hpp"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace rondo_torch {
namespace {

using c10::intrusive_ptr;
using c10d::OpType;
using c10d::Work;
using Tensors = std::vector<at::Tensor>;

std::size_t units_per_element(const at::Tensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.numel());
  if (count == 0) return to_copy(at::empty({1}, tensor.options())).count;
  return to_copy(tensor).count / count;
}

// Back to back.
struct Parts {
  std::vector<std::size_t> counts;
  std::vector<std::size_t> displacements;
};
Parts parts_of(const std::vector<std::size_t>& counts) {
  Parts parts{counts, {}};
  std::size_t at = 0;
  for (const std::size_t count : counts) {
    parts.displacements.push_back(at);
    at += count;
  }
  return parts;
}
Parts parts_of(const Tensors& tensors, std::size_t units) {
  std::vector<std::size_t> counts;
  for (const at::Tensor& tensor : tensors) counts.push_back(static_cast<std::size_t>(tensor.numel()) * units);
  return parts_of(counts);
}
Parts parts_of(const char* what, const std::vector<std::int64_t>& splits, const at::Tensor& tensor, int size,
               std::size_t units) {
  TORCH_CHECK_VALUE(tensor.dim() > 0, "rondo: alltoall_base: ", what,
                    " has no dimension to split; use a tensor of rows");
  const std::int64_t rows = tensor.size(0);
  std::vector<std::size_t> counts;
  if (splits.empty()) {
    TORCH_CHECK_VALUE(rows % size == 0, "rondo: alltoall_base: ", what, " has ", rows, " rows, no multiple of ", size,
                      " ranks; give split sizes");
    counts.assign(static_cast<std::size_t>(size), static_cast<std::size_t>(tensor.numel() / size) * units);
    return parts_of(counts);
  }
  TORCH_CHECK_VALUE(splits.size() == static_cast<std::size_t>(size), "rondo: alltoall_base: ", splits.size(),
                    " split sizes of ", what, " for ", size, " ranks; give one a rank");
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) {
    TORCH_CHECK_VALUE(split >= 0, "rondo: alltoall_base: a split size of ", what, " is ", split);
    sum += split;
  }
  TORCH_CHECK_VALUE(sum == rows, "rondo: alltoall_base: the split sizes of ", what, " sum to ", sum, ", but it has ",
                    rows, " rows");
  const std::int64_t row = rows == 0 ? 0 : tensor.numel() / rows;
  for (const std::int64_t split : splits) counts.push_back(static_cast<std::size_t>(split * row) * units);
  return parts_of(counts);
}

void check_list(const char* call, const char* what, const Tensors& list, int size, const at::Tensor& like) {
  TORCH_CHECK_VALUE(list.size() == static_cast<std::size_t>(size), "rondo: ", call, ": ", list.size(), " ", what,
                    " for ", size, " ranks; give one tensor a rank");
  for (const at::Tensor& tensor : list) check_same_type(call, like, tensor);
}
const Tensors& only_list(const char* call, const std::vector<Tensors>& lists) {
  TORCH_CHECK_VALUE(lists.size() == 1, "rondo: ", call, ": ", lists.size(), " lists were given; give exactly 1");
  return lists[0];
}
void check_numel(const char* call, const char* what, std::int64_t found, std::int64_t expected) {
  TORCH_CHECK_VALUE(found == expected, "rondo: ", call, ": ", what, " has ", found, " elements where ", expected,
                    " belong");
}
void check_root(const char* call, std::int64_t root, int size) {
  TORCH_CHECK_VALUE(root >= 0 && root < size, "rondo: ", call, ": root ", root, " is not a rank; use 0 to ", size - 1);
}
// Bytes before the tensor of `rank`, all lying back to back.
std::int64_t offset_of(const Tensors& list, int rank) {
  std::int64_t bytes = 0;
  for (int r = 0; r < rank; ++r) bytes += static_cast<std::int64_t>(list[static_cast<std::size_t>(r)].nbytes());
  return bytes;
}
bool same_numel(const Tensors& tensors, std::int64_t numel) {
  return std::all_of(tensors.begin(), tensors.end(), [numel](const at::Tensor& t) { return t.numel() == numel; });
}

}  // namespace

intrusive_ptr<Work> BackendRondo::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only_tensor("broadcast", tensors);
  check_root("broadcast", options.rootRank, size_);
  Staging staging;
  const Elements data = to_copy(staging.update(tensor));
  const int root = static_cast<int>(options.rootRank);
  return run({OpType::BROADCAST, "broadcast", options.timeout, options.asyncOp},
             {[c = communicator(), data, root](const auto& how) {
               return c->broadcast(data.data, data.data, data.count, data.type, root, how);
             }},
             staging, tensors, tensors);
}

intrusive_ptr<Work> BackendRondo::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only_tensor("allreduce", tensors);
  Staging staging;
  const auto [data, op] = to_reduce("allreduce", staging.update(tensor), options.reduceOp);
  return run({OpType::ALLREDUCE, "all_reduce", options.timeout, options.asyncOp},
             {[c = communicator(), data = data, op = op](const auto& how) {
               return c->all_reduce(data.data, data.data, data.count, data.type, op, how);
             }},
             staging, tensors, tensors);
}

intrusive_ptr<Work> BackendRondo::allreduce_coalesced(Tensors& tensors,
                                                      const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK_VALUE(!tensors.empty(), "rondo: allreduce_coalesced: no tensor was given; give at least 1");
  Staging staging;
  std::vector<Call> calls;
  for (const at::Tensor& tensor : tensors) {
    check_tensor("allreduce_coalesced", tensor);
    const auto [data, op] = to_reduce("allreduce_coalesced", staging.update(tensor), options.reduceOp);
    calls.emplace_back([c = communicator(), data = data, op = op](const auto& how) {
      return c->all_reduce(data.data, data.data, data.count, data.type, op, how);
    });
  }
  return run({OpType::ALLREDUCE_COALESCED, "all_reduce", options.timeout, options.asyncOp}, std::move(calls), staging,
             tensors, tensors);
}

intrusive_ptr<Work> BackendRondo::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = only_tensor("reduce", tensors);
  check_root("reduce", options.rootRank, size_);
  Staging staging;
  const int root = static_cast<int>(options.rootRank);
  const at::Tensor plain = rank_ == root ? staging.update(tensor) : staging.read(tensor);
  const auto [data, op] = to_reduce("reduce", plain, options.reduceOp);
  void* output = rank_ == root ? data.data : nullptr;
  return run({OpType::REDUCE, "reduce", options.timeout, options.asyncOp},
             {[c = communicator(), data = data, op = op, output, root](const auto& how) {
               return c->reduce(data.data, output, data.count, data.type, op, root, how);
             }},
             staging, tensors, tensors);
}

intrusive_ptr<Work> BackendRondo::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) {
  const at::Tensor& input = only_tensor("allgather", inputs);
  const Tensors& list = only_list("allgather", outputs);
  check_list("allgather", "output tensors", list, size_, input);
  check_numel("allgather", "this rank's own output", list[static_cast<std::size_t>(rank_)].numel(), input.numel());
  Staging staging;
  const at::Tensor whole = staging.write_all(list);
  const Elements in = to_copy(staging.apart(staging.read(input), whole, offset_of(list, rank_)));
  const Elements out = to_copy(whole);
  Call call;
  if (same_numel(list, input.numel())) {
    call = [c = communicator(), in, out](const auto& how) {
      return c->all_gather(in.data, out.data, in.count, in.type, how);
    };
  } else {
    call = [c = communicator(), in, out, parts = parts_of(list, units_per_element(input))](const auto& how) {
      return c->all_gather_v(in.data, out.data, parts.counts, parts.displacements, in.type, how);
    };
  }
  return run({OpType::ALLGATHER, "all_gather", options.timeout, options.asyncOp}, {std::move(call)}, staging, inputs,
             list);
}

intrusive_ptr<Work> BackendRondo::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                  const c10d::AllgatherOptions& options) {
  Tensors outputs{output};
  Tensors inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, options);
}

intrusive_ptr<Work> BackendRondo::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == static_cast<std::size_t>(size_), "rondo: allgather_coalesced: ", outputs.size(),
                    " output lists for ", size_, " ranks; give one list a rank");
  Staging staging;
  std::vector<Call> calls;
  Tensors results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_tensor("allgather_coalesced", inputs[i]);
    Tensors list;
    for (const Tensors& of_rank : outputs) {
      TORCH_CHECK_VALUE(of_rank.size() == inputs.size(), "rondo: allgather_coalesced: an output list has ",
                        of_rank.size(), " tensors for ", inputs.size(), " inputs");
      list.push_back(of_rank[i]);
    }
    check_list("allgather_coalesced", "output tensors", list, size_, inputs[i]);
    for (const at::Tensor& tensor : list)
      check_numel("allgather_coalesced", "an output", tensor.numel(), inputs[i].numel());
    const at::Tensor whole = staging.write_all(list);
    const Elements in = to_copy(staging.apart(staging.read(inputs[i]), whole, offset_of(list, rank_)));
    const Elements out = to_copy(whole);
    calls.emplace_back([c = communicator(), in, out](const auto& how) {
      return c->all_gather(in.data, out.data, in.count, in.type, how);
    });
    results.insert(results.end(), list.begin(), list.end());
  }
  return run({OpType::ALLGATHER_COALESCED, "all_gather", options.timeout, options.asyncOp}, std::move(calls), staging,
             inputs, std::move(results));
}

intrusive_ptr<Work> BackendRondo::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                  const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "rondo: allgather_into_tensor: ", outputs.size(), " outputs for ",
                    inputs.size(), " inputs");
  Staging staging;
  std::vector<Call> calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_tensor("allgather_into_tensor", inputs[i]);
    check_same_type("allgather_into_tensor", inputs[i], outputs[i]);
    check_numel("allgather_into_tensor", "an output", outputs[i].numel(), inputs[i].numel() * size_);
    const at::Tensor whole = staging.write(outputs[i]);
    const at::Tensor part = staging.read(inputs[i]);
    const Elements in = to_copy(staging.apart(part, whole, rank_ * static_cast<std::int64_t>(part.nbytes())));
    const Elements out = to_copy(whole);
    calls.emplace_back([c = communicator(), in, out](const auto& how) {
      return c->all_gather(in.data, out.data, in.count, in.type, how);
    });
  }
  const bool one = calls.size() == 1;
  return run({one ? OpType::_ALLGATHER_BASE : OpType::ALLGATHER_INTO_TENSOR_COALESCED,
              one ? "_all_gather_base" : "all_gather", options.timeout, options.asyncOp},
             std::move(calls), staging, inputs, outputs);
}

intrusive_ptr<Work> BackendRondo::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                         const c10d::GatherOptions& options) {
  const at::Tensor& input = only_tensor("gather", inputs);
  check_root("gather", options.rootRank, size_);
  const int root = static_cast<int>(options.rootRank);
  Staging staging;
  at::Tensor part = staging.read(input);
  Elements out;
  Tensors results;
  if (rank_ == root) {
    results = only_list("gather", outputs);
    check_list("gather", "output tensors", results, size_, input);
    for (const at::Tensor& tensor : results) check_numel("gather", "an output", tensor.numel(), input.numel());
    const at::Tensor whole = staging.write_all(results);
    part = staging.apart(part, whole, offset_of(results, rank_));
    out = to_copy(whole);
  } else {
    TORCH_CHECK_VALUE(outputs.empty(), "rondo: gather: output tensors on rank ", rank_, ", which is not the root");
  }
  return run({OpType::GATHER, "gather", options.timeout, options.asyncOp},
             {[c = communicator(), in = to_copy(part), out, root](const auto& how) {
               return c->gather(in.data, out.data, in.count, in.type, root, how);
             }},
             staging, inputs, std::move(results));
}

intrusive_ptr<Work> BackendRondo::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                          const c10d::ScatterOptions& options) {
  const at::Tensor& output = only_tensor("scatter", outputs);
  check_root("scatter", options.rootRank, size_);
  const int root = static_cast<int>(options.rootRank);
  Staging staging;
  const at::Tensor part = staging.write(output);
  const Elements out = to_copy(part);
  Elements in;
  Tensors sources;
  if (rank_ == root) {
    sources = only_list("scatter", inputs);
    check_list("scatter", "input tensors", sources, size_, output);
    for (const at::Tensor& tensor : sources) check_numel("scatter", "an input", tensor.numel(), output.numel());
    in = to_copy(staging.apart(staging.read_all(sources), part, -offset_of(sources, rank_)));
  } else {
    TORCH_CHECK_VALUE(inputs.empty(), "rondo: scatter: input tensors on rank ", rank_, ", which is not the root");
  }
  return run({OpType::SCATTER, "scatter", options.timeout, options.asyncOp},
             {[c = communicator(), in, out, root](const auto& how) {
               return c->scatter(in.data, out.data, out.count, out.type, root, how);
             }},
             staging, std::move(sources), outputs);
}

intrusive_ptr<Work> BackendRondo::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                 const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only_tensor("reduce_scatter", outputs);
  const Tensors& list = only_list("reduce_scatter", inputs);
  check_list("reduce_scatter", "input tensors", list, size_, output);
  check_numel("reduce_scatter", "this rank's own input", list[static_cast<std::size_t>(rank_)].numel(), output.numel());
  Staging staging;
  const at::Tensor part = staging.write(output);
  const at::Tensor flat = staging.apart(staging.read_all(list), part, -offset_of(list, rank_));
  const auto [in, op] = to_reduce("reduce_scatter", flat, options.reduceOp);
  const ReduceCall out = to_reduce("reduce_scatter", part, options.reduceOp);
  Call call;
  if (same_numel(list, output.numel())) {
    call = [c = communicator(), in = in, op = op, to = out.elements](const auto& how) {
      return c->reduce_scatter(in.data, to.data, to.count, to.type, op, how);
    };
  } else {
    const std::size_t units = flat.is_complex() ? 2 : 1;
    call = [c = communicator(), in = in, op = op, to = out.elements, counts = parts_of(list, units).counts](
               const auto& how) { return c->reduce_scatter_v(in.data, to.data, counts, to.type, op, how); };
  }
  return run({OpType::REDUCE_SCATTER, "reduce_scatter", options.timeout, options.asyncOp}, {std::move(call)}, staging,
             list, outputs);
}

intrusive_ptr<Work> BackendRondo::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                       const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output};
  Tensors inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

intrusive_ptr<Work> BackendRondo::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                  const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "rondo: reduce_scatter: ", outputs.size(), " outputs for ",
                    inputs.size(), " inputs");
  Staging staging;
  std::vector<Call> calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_tensor("reduce_scatter", inputs[i]);
    check_same_type("reduce_scatter", inputs[i], outputs[i]);
    check_numel("reduce_scatter", "the input", inputs[i].numel(), outputs[i].numel() * size_);
    const at::Tensor part = staging.write(outputs[i]);
    const at::Tensor whole =
        staging.apart(staging.read(inputs[i]), part, -rank_ * static_cast<std::int64_t>(part.nbytes()));
    const auto [in, op] = to_reduce("reduce_scatter", whole, options.reduceOp);
    const ReduceCall out = to_reduce("reduce_scatter", part, options.reduceOp);
    calls.emplace_back([c = communicator(), in = in, op = op, to = out.elements](const auto& how) {
      return c->reduce_scatter(in.data, to.data, to.count, to.type, op, how);
    });
  }
  const bool one = calls.size() == 1;
  return run({one ? OpType::_REDUCE_SCATTER_BASE : OpType::REDUCE_SCATTER_TENSOR_COALESCED,
              one ? "_reduce_scatter_base" : "reduce_scatter", options.timeout, options.asyncOp},
             std::move(calls), staging, inputs, outputs);
}

intrusive_ptr<Work> BackendRondo::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                std::vector<std::int64_t>& output_splits,
                                                std::vector<std::int64_t>& input_splits,
                                                const c10d::AllToAllOptions& options) {
  check_tensor("alltoall_base", input);
  check_same_type("alltoall_base", input, output);
  const std::size_t units = units_per_element(input);
  Parts send = parts_of("the input", input_splits, input, size_, units);
  Parts receive = parts_of("the output", output_splits, output, size_, units);
  const bool even = input_splits.empty() && output_splits.empty();
  Staging staging;
  const at::Tensor received = staging.write(output);
  const Elements in =
      to_copy(staging.apart(staging.read(input), received, even ? std::optional<std::int64_t>(0) : std::nullopt));
  const Elements out = to_copy(received);
  Call call;
  if (even) {
    check_numel("alltoall_base", "the output", output.numel(), input.numel());
    call = [c = communicator(), in, out, each = send.counts[0]](const auto& how) {
      return c->all_to_all(in.data, out.data, each, in.type, how);
    };
  } else {
    call = [c = communicator(), in, out, send = std::move(send), receive = std::move(receive)](const auto& how) {
      return c->all_to_all_v(in.data, send.counts, send.displacements, out.data, receive.counts, receive.displacements,
                             in.type, how);
    };
  }
  return run({OpType::ALLTOALL_BASE, "all_to_all", options.timeout, options.asyncOp}, {std::move(call)}, staging,
             {input}, {output});
}

intrusive_ptr<Work> BackendRondo::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  TORCH_CHECK_VALUE(!inputs.empty(), "rondo: alltoall: no input tensor; give one a rank");
  check_tensor("alltoall", inputs[0]);
  check_list("alltoall", "input tensors", inputs, size_, inputs[0]);
  check_list("alltoall", "output tensors", outputs, size_, inputs[0]);
  const std::size_t units = units_per_element(inputs[0]);
  Staging staging;
  const at::Tensor received = staging.write_all(outputs);
  const Elements in = to_copy(staging.apart(staging.read_all(inputs), received, std::nullopt));
  const Elements out = to_copy(received);
  return run({OpType::ALLTOALL, "all_to_all", options.timeout, options.asyncOp},
             {[c = communicator(), in, out, send = parts_of(inputs, units),
               receive = parts_of(outputs, units)](const auto& how) {
               return c->all_to_all_v(in.data, send.counts, send.displacements, out.data, receive.counts,
                                      receive.displacements, in.type, how);
             }},
             staging, inputs, outputs);
}
intrusive_ptr<Work> BackendRondo::barrier(const c10d::BarrierOptions& options) {
  Staging staging;
  return run({OpType::BARRIER, "barrier", options.timeout, options.asyncOp},
             {[c = communicator()](const auto& how) { return c->barrier(how); }}, staging, {}, {});
}

}  // namespace rondo_torch
