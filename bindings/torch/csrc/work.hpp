// WorkRondo: what torch holds of operations in flight: their end, their values' way into the caller's tensors, a
// future. Completions: the threads on which works that nobody waits for are finished and futures run what hangs on
// them. One thread is enough until such a callback may wait for another work: then there is always one more that is
// idle.
#pragma once

#include <rondo/error.hpp>
#include <rondo/work.hpp>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace rondo_torch {

// The torch exception that carries an error's text: ValueError for a refused argument, DistBackendError for the rest.
std::exception_ptr to_torch(const rondo::Error& error);
// torch's time-outs may be as long as a number of milliseconds goes.
std::chrono::nanoseconds deadline_of(std::chrono::milliseconds timeout);

class WorkRondo final : public c10d::Work {
 public:
  struct Parts {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char* title = nullptr;
    std::uint64_t sequence = 0;
    std::chrono::milliseconds timeout{0};
    std::vector<at::Tensor> inputs;                        // for the profiler
    std::vector<at::Tensor> outputs;                       // the result
    std::vector<at::Tensor> alive;                         // until the end
    std::vector<std::function<void()>> finish{};           // once, after all operations have completed
    std::vector<c10::intrusive_ptr<WorkRondo>> members{};  // settled before this one
  };
  WorkRondo(int rank, Parts parts);

  // Once, before anybody can wait: what was started. Empty: it has ended already.
  void set_works(std::vector<rondo::Work> works);
  // Before it is shared: what wait() calls if nothing has been started by then.
  void begin_with(std::function<void()> begin) { begin_ = std::move(begin); }
  // Runs `finish` and completes the future, unless that was done. All operations have ended.
  void settle();
  // Whether settle() may run what others have hung on the future, or on those of works that it settles.
  bool may_call_back() const;
  const std::vector<rondo::Work>& works() const { return works_; }

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  std::uint64_t getSequencenumber() const override { return parts_.sequence; }
  std::chrono::milliseconds getTimeout() const override { return parts_.timeout; }

 private:
  bool all_ended() const;

  Parts parts_;
  bool started_ = false;
  std::function<void()> begin_;
  std::vector<rondo::Work> works_;
  std::once_flag settled_;
  std::atomic<bool> future_taken_{false};
  std::atomic<bool> future_completed_{false};
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class Completions {
 public:
  Completions();
  // Settles what has ended, then ends the threads. From any thread, its own included.
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  // Keeps `work` until its operations have ended, then settles it.
  void watch(const c10::intrusive_ptr<WorkRondo>& work);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rondo_torch
