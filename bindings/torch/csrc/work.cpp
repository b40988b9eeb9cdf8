#include "work.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace rondo_torch {

std::exception_ptr to_torch(const rondo::Error& error) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)};
  // "Timed out" is what torch's other backends say, and what scripts look for.
  const char* prefix = error.code() == rondo::ErrorCode::deadline ? "rondo: Timed out waiting: " : "rondo: ";
  const std::string text = prefix + std::string(error.what());
  if (error.code() == rondo::ErrorCode::invalid_argument) return std::make_exception_ptr(c10::ValueError(here, text));
  return std::make_exception_ptr(c10::DistBackendError(here, text));
}

std::chrono::nanoseconds deadline_of(std::chrono::milliseconds timeout) {
  constexpr std::chrono::hours longest{24 * 365};
  return std::min<std::chrono::nanoseconds>(timeout, longest);
}

WorkRondo::WorkRondo(int rank, Parts parts)
    : Work(rank, parts.type, parts.title,
           parts.inputs.empty() ? std::nullopt : std::optional<std::vector<at::Tensor>>(parts.inputs)),
      parts_(std::move(parts)),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
  parts_.inputs.clear();
}

void WorkRondo::set_works(std::vector<rondo::Work> works) {
  const std::lock_guard lock(mutex_);
  works_ = std::move(works);
  started_ = true;
}

bool WorkRondo::all_ended() const {
  if (!started_) return false;
  for (const rondo::Work& work : works_)
    if (work.status() == rondo::WorkStatus::pending) return false;
  return true;
}

void WorkRondo::settle() {
  std::call_once(settled_, [this] {
    std::exception_ptr failure;
    try {
      for (const rondo::Work& work : works_)
        if (const auto error = work.error()) std::rethrow_exception(error);
      for (const auto& finish : parts_.finish) finish();
    } catch (const rondo::Error& error) {
      failure = to_torch(error);
    } catch (...) {
      failure = std::current_exception();
    }
    parts_.finish.clear();
    parts_.alive.clear();
    finish(failure);
    if (failure) future_->setError(failure);
    else future_->markCompleted(c10::IValue(parts_.outputs));
  });
}

bool WorkRondo::isCompleted() {
  {
    const std::lock_guard lock(mutex_);
    if (completed_) return true;
    if (!all_ended()) return false;
  }
  settle();
  return true;
}

bool WorkRondo::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return completed_ && !exception_;
}

std::exception_ptr WorkRondo::exception() const {
  const std::lock_guard lock(mutex_);
  return exception_;
}

int WorkRondo::sourceRank() const {
  TORCH_CHECK(opType_ == c10d::OpType::RECVANYSOURCE && !works_.empty(),
              "sourceRank() is known of a receive from any source only");
  return works_[0].source();
}

std::vector<at::Tensor> WorkRondo::result() {
  TORCH_CHECK(isCompleted(), "the operation has not completed; call wait() first");
  return parts_.outputs;
}

void WorkRondo::synchronize() {}

bool WorkRondo::wait(std::chrono::milliseconds timeout) {
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(started_, "wait() inside a coalescing block: its operations start when the block ends");
  }
  using clock = std::chrono::steady_clock;
  const bool bounded = timeout > kNoTimeout;
  const auto until = clock::now() + (bounded ? timeout : std::chrono::milliseconds(0));
  for (const rondo::Work& work : works_) {
    try {
      if (!bounded) work.wait();
      else if (!work.wait_for(std::max(std::chrono::nanoseconds(until - clock::now()), std::chrono::nanoseconds(0))))
        C10_THROW_ERROR(DistBackendError, c10::str("rondo: wait timed out after ", timeout.count(),
                                                   "ms; the operation goes on until its own deadline"));
    } catch (const rondo::Error&) {  // settle() meets it again
    }
  }
  settle();
  if (const auto failure = exception()) std::rethrow_exception(failure);
  return true;
}

void WorkRondo::abort() {
  TORCH_CHECK(false,
              "rondo: one operation cannot be aborted; abort the process group (all ranks then end with an error)");
}

c10::intrusive_ptr<c10::ivalue::Future> WorkRondo::getFuture() { return future_; }

// Completes with torch's WorkResult as a number, and never with an error.
c10::intrusive_ptr<c10::ivalue::Future> WorkRondo::getFutureResult() {
  auto result = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
  future_->addCallback([result](c10::ivalue::Future& ended) {
    result->markCompleted(c10::IValue(
        static_cast<std::int64_t>(ended.hasError() ? c10d::WorkResult::COMM_ERROR : c10d::WorkResult::SUCCESS)));
  });
  return result;
}

struct Completions::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<c10::intrusive_ptr<WorkRondo>> ended;
  std::size_t watched = 0;
  bool stopping = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return !ended.empty() || (stopping && watched == 0); });
      if (ended.empty()) return;
      {
        c10::intrusive_ptr<WorkRondo> work = std::move(ended.front());
        ended.pop_front();
        --watched;
        lock.unlock();
        work->settle();
      }  // what the work kept alive ends here, unlocked
      lock.lock();
    }
  }
};

Completions::Completions() : state_(std::make_shared<State>()), thread_([state = state_] { state->run(); }) {}

Completions::~Completions() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  if (thread_.get_id() == std::this_thread::get_id()) thread_.detach();
  else thread_.join();
}

void Completions::watch(const c10::intrusive_ptr<WorkRondo>& work) {
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->watched;
  }
  // The last of the operations to end hands the work over.
  auto missing = std::make_shared<std::atomic<std::size_t>>(work->works().size() + 1);
  const auto one_ended = [state = state_, work, missing] {
    if (missing->fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    {
      const std::lock_guard lock(state->mutex);
      state->ended.push_back(work);
    }
    state->changed.notify_one();
  };
  for (const rondo::Work& operation : work->works()) operation.on_end(one_ended);
  one_ended();
}

}  // namespace rondo_torch
