#include <rondo/work.hpp>

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
    const auto engine = state_->engine.lock();
    const auto operation = state_->operation.lock();
    if (engine != nullptr && operation != nullptr && !engine->wait(operation, limit.count())) return false;
  }
  if (state_->error) std::rethrow_exception(state_->error);
  return true;
}

WorkStatus Work::status() const noexcept {
  return state_ == nullptr ? WorkStatus::completed
                           : state_->status.load(std::memory_order_acquire);  // pairs with end()
}

std::exception_ptr Work::error() const { return status() == WorkStatus::failed ? state_->error : nullptr; }
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
  if (tail != nullptr && engine != nullptr) engine->wait(tail, base::never);
  const std::lock_guard lock(state_->mutex);
  if (state_->first_error) std::rethrow_exception(state_->first_error);
}

}  // namespace rondo
