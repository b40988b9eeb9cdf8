#include "backend.hpp"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace rondo_torch {

using c10::intrusive_ptr;
using c10d::OpType;
using c10d::Work;
using std::chrono::milliseconds;
using Tensors = std::vector<at::Tensor>;

namespace {

// So that the other ranks hear rank 0's words, not that their own time is up.
constexpr milliseconds longer_than_rank_0{2000};

}  // namespace

intrusive_ptr<Work> BackendRondo::send(Tensors& tensors, int destination, int tag) {
  const at::Tensor& tensor = only_tensor("send", tensors);
  Staging staging;
  const Elements data = to_copy(staging.read(tensor));
  return run({OpType::SEND, "send", c10d::kUnsetTimeout, true, false},
             {[c = communicator(), data, destination, tag](const auto& how) {
               return c->send(data.data, data.count, data.type, destination, tag, how);
             }},
             staging, tensors, {});
}

intrusive_ptr<Work> BackendRondo::recv(Tensors& tensors, int source, int tag) {
  const at::Tensor& tensor = only_tensor("recv", tensors);
  Staging staging;
  const Elements data = to_copy(staging.write(tensor));
  return run({OpType::RECV, "recv", c10d::kUnsetTimeout, true, false},
             {[c = communicator(), data, source, tag](const auto& how) {
               return c->receive(data.data, data.count, data.type, source, tag, how);
             }},
             staging, tensors, tensors);
}

intrusive_ptr<Work> BackendRondo::recvAnysource(Tensors& tensors, int tag) {
  const at::Tensor& tensor = only_tensor("recvAnysource", tensors);
  Staging staging;
  const Elements data = to_copy(staging.write(tensor));
  return run({OpType::RECVANYSOURCE, "recvAnySource", c10d::kUnsetTimeout, true, false},
             {[c = communicator(), data, tag](const auto& how) {
               return c->receive(data.data, data.count, data.type, rondo::any_source, tag, how);
             }},
             staging, tensors, tensors);
}
void BackendRondo::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  using clock = std::chrono::steady_clock;
  // A tag of its own, in the user's space but far from the small numbers that are used for tags.
  constexpr int tag = -0x6d6f6e69;
  const milliseconds timeout = options.timeout == c10d::kUnsetTimeout ? options_->timeout : options.timeout;
  const auto until = clock::now() + timeout;
  const auto together = communicator();
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size_));
  std::vector<rondo::Work> works;
  const auto tell = [&](int rank) {
    together->send(&bytes[0], 1, rondo::DataType::uint8, rank, tag, {.deadline = deadline_of(options_->timeout)});
  };
  const auto hear = [&](int rank, milliseconds limit) {
    const rondo::Stream own;
    works.push_back(together->receive(&bytes[static_cast<std::size_t>(rank)], 1, rondo::DataType::uint8, rank, tag,
                                      {.stream = &own, .deadline = deadline_of(limit)}));
  };
  if (rank_ == 0 && timeout <= milliseconds(0))  // nothing has been started: the group stays usable
    C10_THROW_ERROR(DistBackendError, c10::str("Rank 0 timed out in monitoredBarrier after ", timeout.count(), " ms"));
  // The bytes must not be left while an operation could write them.
  const auto give_up = [&](const std::string& why) {
    together->abort(why);
    for (const rondo::Work& work : works) {
      try {
        work.wait();
      } catch (const rondo::Error&) {  // the abort
      }
    }
    C10_THROW_ERROR(DistBackendError, why);
  };
  if (rank_ != 0) {
    try {
      tell(0);
      hear(0, timeout + longer_than_rank_0);
      works[0].wait();
    } catch (const rondo::Error& error) {
      C10_THROW_ERROR(DistBackendError, c10::str("Rank ", rank_,
                                                 " successfully reached monitoredBarrier, but received errors "
                                                 "while waiting for send/recv from rank 0: ",
                                                 error.what()));
    }
    return;
  }
  try {
    for (int rank = 1; rank < size_; ++rank) hear(rank, options_->timeout + timeout);
    std::vector<int> missing;
    for (int rank = 1; rank < size_ && (missing.empty() || wait_all_ranks); ++rank) {
      const std::chrono::nanoseconds left = std::max<std::chrono::nanoseconds>(until - clock::now(), milliseconds(0));
      if (!works[static_cast<std::size_t>(rank - 1)].wait_for(left)) missing.push_back(rank);
    }
    if (!missing.empty())
      give_up(c10::str(missing.size() == 1 ? "Rank " : "Ranks ", c10::Join(", ", missing),
                       " failed to pass monitoredBarrier in ", timeout.count(), " ms"));
    for (int rank = 1; rank < size_; ++rank) tell(rank);
  } catch (const rondo::Error& error) {
    give_up(error.what());
  }
}

}  // namespace rondo_torch
