#include <rondo/work.hpp>

#include "communicator/implementation.hpp"
#include "engine/engine.hpp"

#include <utility>

namespace rondo {

Work::Work() noexcept = default;
Work::Work(std::shared_ptr<engine::WorkState> state) noexcept : state_(std::move(state)) {}
Work::Work(const Work&) = default;
Work& Work::operator=(const Work&) = default;
Work::Work(Work&&) noexcept = default;
Work& Work::operator=(Work&&) noexcept = default;
Work::~Work() = default;

void Work::wait() const { static_cast<void>(wait_for(std::chrono::nanoseconds(base::never))); }

bool Work::wait_for(std::chrono::nanoseconds limit) const {
  if (state_ == nullptr) return true;
  if (status() == WorkStatus::pending) {
    communicator::refuse_with_group_pending("Work::wait");
    const auto engine = state_->engine.lock();
    const auto operation = state_->operation.lock();
    if (engine != nullptr && operation != nullptr &&
        !engine->wait(operation, limit.count(), limit.count() == base::never))
      return false;
  }
  if (const std::exception_ptr failure = error()) std::rethrow_exception(failure);
  return true;
}

WorkStatus Work::status() const noexcept {
  return state_ == nullptr ? WorkStatus::completed
                           : state_->status.load(std::memory_order_acquire);  // pairs with end()
}

void Work::on_end(std::function<void()> callback) const {
  if (state_ != nullptr) {
    const std::lock_guard lock(state_->mutex);
    if (status() == WorkStatus::pending) {  // end() stores the status before it takes the callbacks
      state_->callbacks.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

std::exception_ptr Work::error() const {
  if (status() != WorkStatus::failed) return nullptr;
  state_->communicator->error_seen.store(true, std::memory_order_relaxed);
  return state_->error;
}
int Work::source() const noexcept {
  return state_ != nullptr && status() == WorkStatus::completed ? state_->source : -1;
}
std::size_t Work::bytes() const noexcept {
  return state_ != nullptr && status() == WorkStatus::completed ? state_->bytes : 0;
}

Stream::Stream() : state_(std::make_shared<engine::StreamState>()) {}
Stream::Stream(const Stream&) = default;
Stream& Stream::operator=(const Stream&) = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

void Stream::synchronize() const {
  std::shared_ptr<engine::Operation> tail;
  std::shared_ptr<engine::Engine> engine;
  {
    const std::lock_guard lock(state_->mutex);
    tail = state_->tail;
    engine = state_->engine.lock();
  }
  if (tail != nullptr && engine != nullptr) {
    if (tail->work->status.load(std::memory_order_acquire) == WorkStatus::pending)
      communicator::refuse_with_group_pending("Stream::synchronize");
    engine->wait(tail, base::never, true);
  }
  const std::lock_guard lock(state_->mutex);
  if (state_->first_failed == nullptr) return;
  state_->first_failed->communicator->error_seen.store(true, std::memory_order_relaxed);
  std::rethrow_exception(state_->first_failed->error);
}

}  // namespace rondo
