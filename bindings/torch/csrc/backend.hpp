// BackendRondo: torch's process group on CPU tensors, over one rondo::Communicator.
//
// Threads: any, as the communicator: collectives are ordered by the order of the calls. No call holds the GIL.
#pragma once

#include "arena.hpp"
#include "tensors.hpp"
#include "work.hpp"

#include <rondo/rondo.hpp>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace rondo_torch {

class BackendRondo final : public c10d::Backend {
 public:
  struct Options final : c10d::Backend::Options {
    explicit Options(std::chrono::milliseconds timeout) : c10d::Backend::Options("rondo", timeout) {}
    c10::intrusive_ptr<c10d::Backend::Options> clone() const override { return c10::make_intrusive<Options>(*this); }
  };

  // Collective: rank 0 leaves the way to itself, and the key, in `store`. The profiler shows "title:all_reduce" and so
  // on.
  BackendRondo(c10::intrusive_ptr<c10d::Store> store, int rank, int size, c10::intrusive_ptr<Options> options,
               std::string title);
  ~BackendRondo() override;

  const std::string getBackendName() const override { return "rondo"; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options_; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(std::vector<at::Tensor>& tensors,
                                                     const c10d::AllreduceCoalescedOptions& options) override;
  c10::intrusive_ptr<c10d::Work> reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                           std::vector<at::Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather_coalesced(std::vector<std::vector<at::Tensor>>& outputs,
                                                     std::vector<at::Tensor>& inputs,
                                                     const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                                                 std::vector<at::Tensor>& inputs,
                                                                 const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                        const c10d::GatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                                         const c10d::ScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter(std::vector<at::Tensor>& outputs,
                                                std::vector<std::vector<at::Tensor>>& inputs,
                                                const c10d::ReduceScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                      const c10d::ReduceScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                                                 std::vector<at::Tensor>& inputs,
                                                                 const c10d::ReduceScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& output, at::Tensor& input,
                                               std::vector<std::int64_t>& output_splits,
                                               std::vector<std::int64_t>& input_splits,
                                               const c10d::AllToAllOptions& options) override;
  c10::intrusive_ptr<c10d::Work> alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                          const c10d::AllToAllOptions& options) override;
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int destination, int tag) override;
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int source, int tag) override;
  c10::intrusive_ptr<c10d::Work> recvAnysource(std::vector<at::Tensor>& tensors, int tag) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override;
  // Rank 0 hears of every rank and names those that did not come in time: the first, or all. Then the group is aborted.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // What is issued between the two, by whatever thread, starts together at the end, whose Work stands for all. Waiting
  // for one of them earlier starts what the block holds so far; so does not lose what a block that an exception left
  // open holds.
  void startCoalescing() override;
  c10::intrusive_ptr<c10d::Work> endCoalescing() override;

  // Window memory for allocateTensor(): collective, the same `bytes` on every rank; replaces what was reserved before.
  std::shared_ptr<Arena> reserve(std::size_t bytes);
  bool supportsTensorAlloc(c10::DeviceIndex /*device*/) override { return arena() != nullptr; }
  at::Tensor allocateTensor(long count, at::TensorOptions options) override;
  std::shared_ptr<c10::Allocator> getMemAllocator() override;

  std::uint64_t getSequenceNumberForGroup() override;
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<c10d::Backend::Options>& options) override;
  // Ends every wait on every rank with an error.
  void abort() override;
  // Waits for what is pending, then says goodbye. Waits for the others' goodbyes too, for a few seconds at most.
  void shutdown() override;
  c10d::ErrorType getError() override;

 private:
  // Starts one operation; options carry the stream and the deadline.
  using Call = std::function<rondo::Work(const rondo::CallOptions&)>;
  struct Launch {
    c10d::OpType type;
    const char* title;
    std::chrono::milliseconds timeout;
    bool async = true;
    bool is_collective = true;
  };
  c10::intrusive_ptr<c10d::Work> run(const Launch& launch, std::vector<Call> calls, Staging& staging,
                                     std::vector<at::Tensor> inputs, std::vector<at::Tensor> outputs);
  void issue(const c10::intrusive_ptr<WorkRondo>& work, const std::vector<Call>& calls,
             std::chrono::milliseconds timeout);
  // Throws after shutdown().
  std::shared_ptr<rondo::Communicator> communicator();
  std::shared_ptr<Arena> arena();
  void watch(const c10::intrusive_ptr<WorkRondo>& work);
  const char* title(const char* operation) const;
  void leave(std::chrono::milliseconds patience) noexcept;

  const std::string title_;
  c10::intrusive_ptr<Options> options_;
  const int process_;  // a forked child must leave alone what its parent's threads use
  std::shared_ptr<rondo::Communicator> communicator_;
  std::mutex mutex_;
  std::unique_ptr<Completions> completions_;
  std::shared_ptr<Arena> arena_;
  std::uint64_t sequence_ = 0;

  struct Coalesced {
    c10::intrusive_ptr<WorkRondo> work;
    std::vector<Call> calls;
    std::chrono::milliseconds timeout;
  };
  // Starts what the open block holds; returns what went wrong.
  std::exception_ptr begin_coalesced(bool watched);
  bool coalescing_ = false;
  std::vector<Coalesced> coalesced_;
  std::vector<c10::intrusive_ptr<WorkRondo>> begun_;  // of the open block
};

}  // namespace rondo_torch
