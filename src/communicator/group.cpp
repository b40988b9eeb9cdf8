#include "communicator/implementation.hpp"

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace rondo {
namespace communicator {
namespace {

struct Pending {
  std::shared_ptr<engine::Engine> engine;
  std::shared_ptr<engine::Operation> operation;
  std::vector<std::shared_ptr<engine::Operation>> after;
  bool blocking;
};
struct ThreadGroup {
  std::vector<Pending> pending;
};
// Apart from the list, which needs construction: every call reads it.
constinit thread_local int group_depth = 0;
ThreadGroup& thread_group() {
  thread_local ThreadGroup group;
  return group;
}

}  // namespace

bool in_group() { return group_depth > 0; }

void refuse_with_group_pending(const char* call) {
  if (in_group() && !thread_group().pending.empty())
    throw Error(ErrorCode::invalid_usage,
                std::string(call) + " inside a group waits for what the group has yet to submit",
                "call it after the group's submit(), or after its end");
}

void add_to_group(std::shared_ptr<engine::Engine> engine, std::shared_ptr<engine::Operation> operation,
                  std::vector<std::shared_ptr<engine::Operation>> after, bool blocking) {
  thread_group().pending.push_back({std::move(engine), std::move(operation), std::move(after), blocking});
}

}  // namespace communicator

Group::Group() : exceptions_(std::uncaught_exceptions()) { ++communicator::group_depth; }

Group::~Group() noexcept(false) {
  if (submitted_) return;
  // While unwinding, operations that were recorded must still start: their peers wait for them. Their errors are not
  // thrown.
  if (std::uncaught_exceptions() > exceptions_) {
    try {
      submit();
    } catch (...) {  // the exception that is unwinding says more
    }
    return;
  }
  submit();
}

void Group::submit() {
  if (submitted_) return;
  submitted_ = true;
  communicator::ThreadGroup& group = communicator::thread_group();
  if (--communicator::group_depth > 0) return;
  const std::vector<communicator::Pending> pending = std::exchange(group.pending, {});
  for (const auto& p : pending) {
    const auto before = [&](std::size_t i) { return i < p.after.size() ? p.after[i] : nullptr; };
    p.engine->submit(p.operation, {before(0), before(1)});
  }
  std::exception_ptr first;
  for (const auto& p : pending) {
    if (!p.blocking) continue;
    p.engine->wait(p.operation, base::never, true);
    if (!p.operation->work->error) continue;
    p.operation->communicator().error_seen.store(true, std::memory_order_relaxed);
    if (!first) first = p.operation->work->error;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace rondo
