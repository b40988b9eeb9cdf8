#include "work.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <system_error>
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

bool WorkRondo::may_call_back() const {
  return future_taken_.load(std::memory_order_acquire) ||
         std::any_of(parts_.members.begin(), parts_.members.end(), [](const auto& m) { return m->may_call_back(); });
}

// Callbacks run outside of call_once: they may wait for this very work.
void WorkRondo::settle() {
  for (const auto& member : parts_.members) member->settle();
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
  });
  if (future_completed_.exchange(true)) return;
  if (const auto failure = exception()) future_->setError(failure);
  else future_->markCompleted(c10::IValue(parts_.outputs));
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
  const auto started = [this] {
    const std::lock_guard lock(mutex_);
    return started_;
  };
  if (!started() && begin_) begin_();
  TORCH_CHECK(started(), "the operation's coalescing block was left, or its group has gone, before it started");
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

c10::intrusive_ptr<c10::ivalue::Future> WorkRondo::getFuture() {
  future_taken_.store(true, std::memory_order_release);
  return future_;
}

// Completes with torch's WorkResult as a number, and never with an error.
c10::intrusive_ptr<c10::ivalue::Future> WorkRondo::getFutureResult() {
  future_taken_.store(true, std::memory_order_release);
  auto result = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
  future_->addCallback([result](c10::ivalue::Future& ended) {
    result->markCompleted(c10::IValue(
        static_cast<std::int64_t>(ended.hasError() ? c10d::WorkResult::COMM_ERROR : c10d::WorkResult::SUCCESS)));
  });
  return result;
}

struct Completions::State {
  static constexpr std::size_t most_threads = 64;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<c10::intrusive_ptr<WorkRondo>> ended;
  std::vector<std::thread> threads;
  std::size_t idle = 0;
  std::size_t watched = 0;
  bool stopping = false;

  // Under the lock. Without a thread to be had, callbacks that wait for each other wait until the deadline.
  static void add_thread(const std::shared_ptr<State>& state) {
    try {
      state->threads.emplace_back([state] { run(state); });
      ++state->idle;
    } catch (const std::system_error&) {
      if (state->threads.empty()) throw;
    }
  }

  static void run(const std::shared_ptr<State>& state) {
    std::unique_lock lock(state->mutex);
    for (;;) {
      state->changed.wait(lock, [&] { return !state->ended.empty() || (state->stopping && state->watched == 0); });
      if (state->ended.empty()) return;
      --state->idle;
      {
        c10::intrusive_ptr<WorkRondo> work = std::move(state->ended.front());
        state->ended.pop_front();
        if (--state->watched == 0 && state->stopping) state->changed.notify_all();
        if (work->may_call_back() && state->idle == 0 && state->threads.size() < most_threads) add_thread(state);
        lock.unlock();
        work->settle();
      }  // what the work kept alive ends here, unlocked
      lock.lock();
      ++state->idle;
    }
  }
};

Completions::Completions() : state_(std::make_shared<State>()) {
  const std::lock_guard lock(state_->mutex);
  State::add_thread(state_);
}

Completions::~Completions() {
  std::vector<std::thread> threads;
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  // A thread that settles what has ended may add another, or be the one that is here and cannot wait for itself.
  for (;;) {
    threads.swap(state_->threads);
    lock.unlock();
    for (std::thread& thread : threads) {
      if (thread.get_id() == std::this_thread::get_id()) thread.detach();
      else thread.join();
    }
    threads.clear();
    lock.lock();
    if (state_->threads.empty()) return;
  }
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
