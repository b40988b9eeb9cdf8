#include "engine/engine.hpp"

#include "base/log.hpp"
#include "executor/cpu/execution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rondo::engine {
namespace {

using base::Nanoseconds;

constexpr Nanoseconds millisecond = 1'000'000;
constexpr Nanoseconds first_inquiry = 20 * millisecond;
constexpr Nanoseconds longest_inquiry_interval = 500 * millisecond;
constexpr Nanoseconds time_for_verdict = 250 * millisecond;
constexpr Nanoseconds time_for_explanation = 1500 * millisecond;
constexpr Nanoseconds nap = 5 * millisecond;

// A thread that goes on only after an operation: its communicator knows of it from the first nap to the end.
class BlockedThread {
 public:
  explicit BlockedThread(const Operation& operation) : operation_(&operation) {}
  BlockedThread(const BlockedThread&) = delete;
  BlockedThread& operator=(const BlockedThread&) = delete;
  ~BlockedThread() {
    if (noted_) operation_->communicator().end_wait(operation_->sequence());
  }
  void note() {
    if (noted_ || operation_->sequence() == 0) return;
    operation_->communicator().begin_wait(operation_->sequence());
    noted_ = true;
  }

 private:
  const Operation* operation_;
  bool noted_ = false;
};

}  // namespace

Engine::Engine(EngineParts parts) : parts_(std::move(parts)) {
  parts_.back_off.nap = nap;
  parts_.wire_back_off.nap = nap;
}

Engine::~Engine() { stop(); }

void Engine::start() {
  bootstrap::ControlHandlers handlers;
  handlers.on_message = [this](const bootstrap::ControlMessage& message) { on_message(message); };
  handlers.on_rank_failed = [this](int rank, const std::string& why) { on_rank_failed(rank, why); };
  base::Poller* poller = parts_.poller.get();
  parts_.tree->start(std::move(handlers), *parts_.bell, [poller] { poller->wake(); });
  worker_bell_.ringer_fences.store(1, std::memory_order_relaxed);
  service_ = parts_.system->start_thread("rondo-service", [this] { service_loop(); });
  worker_ = parts_.system->start_thread("rondo-worker", [this] { worker_loop(); });
}

void Engine::stop() {
  if (service_ == nullptr) return;
  stopping_.store(true, std::memory_order_release);  // pairs with the loops' loads
  wake_worker();
  base::ring(*parts_.bell, *parts_.system);
  parts_.poller->wake();
  worker_->join();
  service_->join();
  worker_.reset();
  service_.reset();
}

bool Engine::leave(Nanoseconds deadline) { return parts_.tree->leave(deadline); }
void Engine::leave_with_error(const std::string& why) { parts_.tree->leave_with_error(why); }

void Engine::add(const std::shared_ptr<CommunicatorState>& communicator) {
  std::vector<std::pair<int, std::string>> failed;
  std::vector<bootstrap::ControlMessage> early;
  {
    const std::lock_guard lock(mutex_);
    communicators_[communicator->context] = communicator;
    failed.assign(failed_ranks_.begin(), failed_ranks_.end());
    std::erase_if(early_verdicts_, [&](bootstrap::ControlMessage& message) {
      if (message.context != communicator->context) return false;
      early.push_back(std::move(message));
      return true;
    });
  }
  for (const bootstrap::ControlMessage& message : early) on_message(message);
  for (const auto& [rank, why] : failed)
    if (communicator->rank_of_world(rank) >= 0)
      communicator->poison(Error(ErrorCode::rank_failed, why, "see that rank's own output for its reason", rank));
}

void Engine::remove(const CommunicatorState& communicator) {
  const std::lock_guard lock(mutex_);
  communicators_.erase(communicator.context);
}

void Engine::service_loop() {
  while (!stopping_.load(std::memory_order_acquire)) {
    const Nanoseconds wanted = parts_.tree->progress();
    parts_.fabric->service();
    const Nanoseconds wait = std::clamp<Nanoseconds>(wanted - parts_.system->now(), 0, 500 * millisecond);
    parts_.poller->wait(wait);
  }
  parts_.tree->progress();
}

void Engine::wake_worker() { base::ring(worker_bell_, *parts_.system); }

void Engine::worker_loop() {
  std::vector<std::shared_ptr<Operation>> mine;
  Nanoseconds next_check = 0;
  std::uint32_t idle = 0;
  while (!stopping_.load(std::memory_order_acquire)) {
    mine.clear();
    {
      const std::lock_guard lock(mutex_);
      for (const auto& operation : runnable_)
        if (!operation->is_owned()) mine.push_back(operation);
    }
    bool moved = false;
    const Nanoseconds now = parts_.system->now();
    const bool check = now >= next_check;
    if (check) next_check = now + nap;
    for (const auto& operation : mine) {
      if (!operation->try_own()) continue;
      if (check) check_time(*operation);
      moved = visit_owned(operation) != Visit::blocked || moved;
    }
    if (moved) {
      idle = 0;
      continue;
    }
    if (mine.empty()) {
      base::arm(worker_bell_, *parts_.system);
      {
        const std::lock_guard lock(mutex_);
        const bool any = std::any_of(runnable_.begin(), runnable_.end(), [](const auto& o) { return !o->is_owned(); });
        if (any) continue;
      }
      if (stopping_.load(std::memory_order_acquire)) break;
      base::sleep(worker_bell_, *parts_.system, 100 * millisecond);
      continue;
    }
    if (++idle < parts_.back_off.yields) {
      parts_.system->yield();
      continue;
    }
    // Look once more between arming and sleeping, as wait_until does.
    base::arm(*parts_.bell, *parts_.system);
    for (const auto& operation : mine) {
      if (!operation->try_own()) continue;
      operation->arm();
      moved = visit_owned(operation) != Visit::blocked || moved;
    }
    if (!moved && !stopping_.load(std::memory_order_acquire)) base::sleep(*parts_.bell, *parts_.system, nap);
  }
}

Engine::Visit Engine::visit(Operation& operation) noexcept {
  CommunicatorState& communicator = operation.communicator();
  try {
    if (communicator.poisoned()) throw communicator.error();
    if (operation.timing.foreign_until != base::never) return Visit::blocked;  // the board is being asked
    operation.pump();
    bool moved = false;
    while (operation.advance()) moved = true;
    if (operation.done()) return Visit::ended;
    return moved ? Visit::moved : Visit::blocked;
  } catch (const executor::ForeignMessage& foreign) {
    operation.timing.foreign_until = parts_.system->now() + time_for_explanation;
    const std::string what =
        foreign.expected == foreign.found
            ? fmt::format("rank {} of {} sent {} bytes where {} belong", foreign.peer, communicator.name,
                          foreign.found_bytes, foreign.expected_bytes)
            : fmt::format("rank {} of {} sent a message of another operation", foreign.peer, communicator.name);
    operation.timing.foreign.emplace(
        ErrorCode::mismatch, fmt::format("{}: {}", operation.describe(), what),
        "every rank must call the same operations in the same order with the same arguments");
    inquire(operation);
    return Visit::blocked;
  } catch (const Error& error) {
    // A path breaks because the peer has died, or because it has left after somebody else's death: the control tree
    // knows which, and may be a little slower.
    if (error.code() == ErrorCode::transport && error.peer() >= 0 && !communicator.poisoned()) {
      operation.timing.foreign_until = parts_.system->now() + time_for_verdict;
      operation.timing.foreign = error;
      return Visit::blocked;
    }
    if (!communicator.poisoned()) fail(communicator, error);
  } catch (const std::exception& error) {
    if (!communicator.poisoned())
      fail(communicator, Error(ErrorCode::internal, fmt::format("{}: {}", operation.describe(), error.what())));
  }
  operation.work->error = std::make_exception_ptr(communicator.error());
  return Visit::ended;
}

// An operation that has ended stays owned for good, so that nobody visits it again.
Engine::Visit Engine::visit_owned(const std::shared_ptr<Operation>& operation) {
  const Visit result = visit(*operation);
  if (result == Visit::ended) end(operation);
  else operation->disown();
  return result;
}

void Engine::start_timing(Operation& operation) {
  const Nanoseconds now = parts_.system->now();
  auto& timing = operation.timing;
  timing.deadline = timing.limit >= base::never - now ? base::never : now + timing.limit;
  timing.inquiry_interval = first_inquiry;
  timing.next_inquiry = now + first_inquiry;
  timing.verdict = base::never;
  timing.foreign_until = base::never;
  timing.started = true;
}

void Engine::check_time(Operation& operation) {
  auto& timing = operation.timing;
  CommunicatorState& communicator = operation.communicator();
  if (communicator.poisoned()) return;
  if (!timing.started) start_timing(operation);
  const Nanoseconds now = parts_.system->now();
  if (operation.sequence() != 0) communicator.set_progress(operation.progress());
  if (now >= timing.next_inquiry) {
    inquire(operation);
    timing.inquiry_interval = std::min(2 * timing.inquiry_interval, longest_inquiry_interval);
    timing.next_inquiry = now + timing.inquiry_interval;
  }
  if (now >= timing.foreign_until) {
    fail(communicator, *timing.foreign);
    return;
  }
  if (now >= timing.deadline) {
    if (timing.verdict == base::never) {
      inquire(operation);
      timing.verdict = now + time_for_verdict;
    } else if (now >= timing.verdict) {
      fail(communicator, deadline_error(operation));
    }
  }
}

// Steps until done (true) or `looks` looks in a row moved nothing, and looks at nothing else: a peer that is as far
// answers within a microsecond.
bool Engine::spin(Operation& operation, std::uint32_t looks) {
  for (std::uint32_t idle = 0; idle < looks;) {
    operation.pump();
    if (operation.advance()) {
      if (operation.done()) return true;
      idle = 0;
    } else {
      ++idle;
      base::cpu_relax();
    }
  }
  return false;
}

void Engine::run(Operation& operation) {
  // Taking the time costs a tenth of a small collective: the clock starts at the first nap.
  operation.timing.started = false;
  operation.timing.foreign_until = base::never;
  CommunicatorState& communicator = operation.communicator();
  const base::BackOff& back_off = back_off_of(operation);
  const std::uint32_t looks = std::min(back_off.spins, parts_.system->spin_limit());
  base::BackOff after_looks = back_off;
  after_looks.spins = 0;
  bool ended = false;
  BlockedThread thread(operation);
  const auto look = [&] {
    const Visit result = visit(operation);
    ended = result == Visit::ended;
    return result != Visit::blocked;
  };
  while (!ended) {
    try {
      if (spin(operation, looks)) break;
    } catch (...) {  // visit() meets it again, and judges it
    }
    base::wait_until(
        *parts_.system, *parts_.bell, after_looks, base::never, look,
        [&] {
          thread.note();
          check_time(operation);
        },
        [&] { operation.arm(); });
  }
  const bool failed = operation.work->error != nullptr;
  operation.ended(failed);
  if (failed) throw communicator.error();
}

void Engine::make_runnable(const std::shared_ptr<Operation>& operation) {
  start_timing(*operation);
  operation->start();
  runnable_.push_back(operation);
}

void Engine::submit(const std::shared_ptr<Operation>& operation,
                    std::initializer_list<std::shared_ptr<Operation>> after) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& before : after) {
      if (before == nullptr || before->finished) continue;
      before->successors.push_back(operation);
      ++operation->blockers;
    }
    operation->communicator().in_flight.fetch_add(1, std::memory_order_relaxed);
    operation->submitted = true;
    if (operation->blockers == 0) make_runnable(operation);
  }
  wake_worker();
}

void Engine::end(const std::shared_ptr<Operation>& operation) {
  const bool failed = operation->work->error != nullptr;
  operation->ended(failed);
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    operation->finished = true;
    std::erase(runnable_, operation);
    if (failed && operation->stream) {
      const std::lock_guard stream_lock(operation->stream->mutex);
      if (!operation->stream->first_failed) operation->stream->first_failed = operation->work;
    }
    operation->stream.reset();  // whose tail may be this operation: each would keep the other alive
    for (const auto& next : operation->successors)
      if (--next->blockers == 0) {
        make_runnable(next);
        more = true;
      }
    operation->successors.clear();
  }
  const std::shared_ptr<WorkState> work = operation->work;
  // Release: wait() and status() read error, source and bytes after loading this.
  work->status.store(failed ? WorkStatus::failed : WorkStatus::completed, std::memory_order_release);
  std::vector<std::function<void()>> callbacks;
  {
    const std::lock_guard lock(work->mutex);
    callbacks.swap(work->callbacks);
  }
  for (const auto& callback : callbacks) callback();
  operation->communicator().in_flight.fetch_sub(1, std::memory_order_release);  // pairs with drain()
  base::ring(*parts_.bell, *parts_.system);
  if (more) wake_worker();
}

void Engine::drain(CommunicatorState& communicator) {
  base::wait_until(
      *parts_.system, *parts_.bell, parts_.back_off, base::never,
      [&] { return communicator.in_flight.load(std::memory_order_acquire) == 0; }, [&] { wake_worker(); });
}

bool Engine::wait(const std::shared_ptr<Operation>& operation, Nanoseconds limit, bool blocked) {
  WorkState& work = *operation->work;
  const auto finished = [&] { return work.status.load(std::memory_order_acquire) != WorkStatus::pending; };
  const Nanoseconds now = parts_.system->now();
  const Nanoseconds deadline = limit >= base::never - now ? base::never : now + limit;
  bool runnable = false;
  BlockedThread thread(*operation);
  const auto look = [&] {
    if (finished()) return true;
    if (!runnable) {
      // A stream's tail can be waited for before submit() has linked it.
      const std::lock_guard lock(mutex_);
      runnable = operation->submitted && operation->blockers == 0 && !operation->finished;
    }
    if (!runnable || !operation->try_own()) return false;
    return visit_owned(operation) != Visit::blocked || finished();
  };
  while (!finished()) {
    const auto owned = [&](auto&& act) {
      if (!runnable || !operation->try_own()) return;
      act();
      operation->disown();
    };
    const auto result = base::wait_until(
        *parts_.system, *parts_.bell, back_off_of(*operation), deadline, look,
        [&] {
          if (blocked) thread.note();
          owned([&] { check_time(*operation); });
        },
        [&] { owned([&] { operation->arm(); }); });
    if (result == base::WaitResult::deadline) break;
  }
  wake_worker();
  return finished();
}

}  // namespace rondo::engine
