#include "transports/sim/scheduler.hpp"

#include "base/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rondo::transport::sim {

Scheduler::Scheduler(const SchedulerOptions& options) : options_(options), random_(options.seed) {
  if (options_.stacks == nullptr) options_.stacks = std::make_shared<FiberStackPool>();
}
// Fibers that have not ended (run() threw) are given up: what their stacks own is lost with them.
Scheduler::~Scheduler() = default;

std::size_t Scheduler::spawn(int rank, std::string name, std::function<void()> body) {
  const std::size_t number = threads_.size();
  auto guarded = [this, body = std::move(body)] {
    try {
      body();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
    }
  };
  threads_.push_back(
      {rank, std::move(name), std::make_unique<Fiber>(options_.stacks->take(), std::move(guarded)), State::waiting});
  ++alive_;
  make_ready(number);
  return number;
}

void Scheduler::run() {
  while (alive_ > 0) {
    fire_timers();
    if (ready_.empty()) {
      if (timers_.empty()) throw SimulationError("deadlock: nobody is ready and no timer runs" + picture());
      now_ = timers_.top().time;
      continue;
    }
    if (++turns_ > options_.most_turns)
      throw SimulationError(fmt::format("no end after {} turns{}", options_.most_turns, picture()));
    take_turn();
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
}

void Scheduler::take_turn() {
  const std::size_t index = random_.below(ready_.size());
  const std::size_t number = ready_[index];
  ready_[index] = ready_.back();
  ready_.pop_back();
  mix(number);
  now_ += random_.between(20, 80);
  running_ = number;
  threads_[number].fiber->resume();
  running_ = nobody;
  Thread& thread = threads_[number];  // spawn() may have moved it
  if (!thread.fiber->ended()) return;
  thread.state = State::ended;
  options_.stacks->give_back(thread.fiber->take_stack());
  thread.fiber.reset();
  --alive_;
  for (std::size_t other = 0; other < threads_.size(); ++other)
    if (threads_[other].state == State::waiting && threads_[other].joining == number) make_ready(other);
}

void Scheduler::fire_timers() {
  while (!timers_.empty() && timers_.top().time <= now_) {
    const Timer timer = timers_.top();
    timers_.pop();
    if (timer.event != nullptr) {
      mix(~timer.number);
      (*timer.event)();
    } else if (threads_[timer.thread].wait_number == timer.wait_number) {
      if (threads_[timer.thread].state == State::waiting) make_ready(timer.thread);
    }
  }
}

void Scheduler::mix(std::uint64_t value) {
  trace_ = (trace_ ^ value ^ static_cast<std::uint64_t>(now_)) * 0x9E3779B97F4A7C15ULL;
  trace_ ^= trace_ >> 29;
}

void Scheduler::make_ready(std::size_t number) {
  Thread& thread = threads_[number];
  thread.word = nullptr;
  thread.joining = nobody;
  if (frozen(thread.rank)) {
    thread.state = State::parked;
  } else {
    thread.state = State::ready;
    ready_.push_back(number);
  }
}

void Scheduler::give_way() {
  Fiber& fiber = *threads_[running_].fiber;
  fiber.leave();
}

void Scheduler::yield() {
  make_ready(running_);
  give_way();
}

void Scheduler::maybe_yield() {
  if (running_ == nobody || options_.preempt_one_in == 0 || !random_.one_in(options_.preempt_one_in)) return;
  yield();
}

void Scheduler::block(const void* word, std::size_t joining, Nanoseconds limit) {
  Thread& thread = threads_[running_];
  thread.state = State::waiting;
  thread.word = word;
  thread.joining = joining;
  ++thread.wait_number;
  if (limit < base::never - now_)
    timers_.push({now_ + std::max<Nanoseconds>(limit, 1), timers_made_++, running_, thread.wait_number, nullptr});
  give_way();
}

void Scheduler::sleep(Nanoseconds duration) {
  const Nanoseconds end = now_ + duration;
  while (now_ < end) block(nullptr, nobody, end - now_);
}

void Scheduler::wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Nanoseconds limit) {
  // One thread: nobody can change the word between this look and the sleep.
  if (word.load(std::memory_order_acquire) != expected) return yield();
  if (options_.spurious_wake_one_in != 0 && random_.one_in(options_.spurious_wake_one_in))
    limit = std::min<Nanoseconds>(limit, random_.between(1, 5000));
  block(&word, nobody, limit);
}

void Scheduler::join(std::size_t fiber) {
  while (threads_[fiber].state != State::ended) block(nullptr, fiber, base::never);
}

std::size_t Scheduler::wake(const std::atomic<std::uint32_t>& word) {
  std::size_t woken = 0;
  for (std::size_t number = 0; number < threads_.size(); ++number) {
    if (threads_[number].state != State::waiting || threads_[number].word != &word) continue;
    make_ready(number);
    ++woken;
  }
  return woken;
}

void Scheduler::after(Nanoseconds delay, std::function<void()> event) {
  timers_.push({now_ + std::max<Nanoseconds>(delay, 0), timers_made_++, nobody, 0,
                std::make_shared<std::function<void()>>(std::move(event))});
}

void Scheduler::freeze(int rank) {
  frozen_.insert(rank);
  std::erase_if(ready_, [&](std::size_t number) {
    if (threads_[number].rank != rank) return false;
    threads_[number].state = State::parked;
    return true;
  });
}

void Scheduler::thaw(int rank) {
  frozen_.erase(rank);
  for (std::size_t number = 0; number < threads_.size(); ++number)
    if (threads_[number].rank == rank && threads_[number].state == State::parked) make_ready(number);
}

std::string Scheduler::picture() const {
  std::string text = fmt::format(" at {} ns of virtual time", now_);
  for (const Thread& thread : threads_) {
    if (thread.state == State::ended) continue;
    const char* what = thread.state == State::ready    ? "is ready"
                       : thread.state == State::parked ? "is frozen"
                                                       : "waits";
    text += fmt::format("; {} of rank {} {}", thread.name, thread.rank, what);
    if (thread.state != State::waiting) continue;
    if (thread.joining != nobody) text += fmt::format(" for the end of {}", threads_[thread.joining].name);
    else if (thread.word == nullptr) text += " for time to pass";
    else text += fmt::format(" for a wake-up of the word at {}", thread.word);
  }
  return text;
}

}  // namespace rondo::transport::sim
