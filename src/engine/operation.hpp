// Operation: something in flight — a collective stepping a plan, a send, a receive. WorkState: what its user holds.
//
// An operation has one owner at a time (try_own / disown), the thread that steps it: a waiting caller or the worker. It
// is linked into the order of its stream and of its communicator by `blockers` and `successors`, which the engine's
// mutex guards.
#pragma once

#include <rondo/error.hpp>
#include <rondo/work.hpp>

#include "base/system.hpp"
#include "base/wait.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace rondo::engine {

class Engine;
class Operation;
class CommunicatorState;

// Outlives engine and operation, which it does not own: both are there while the status is pending.
struct WorkState {
  std::weak_ptr<Engine> engine;
  std::weak_ptr<Operation> operation;
  std::shared_ptr<CommunicatorState> communicator;
  std::atomic<WorkStatus> status{WorkStatus::pending};  // stored with release after error, source and bytes
  std::exception_ptr error;
  int source = -1;
  std::size_t bytes = 0;
  // Guards callbacks, which are called after `status` has been stored.
  std::mutex mutex;
  std::vector<std::function<void()>> callbacks;
};

// A stream's order, guarded by its own mutex, which is taken last. All its operations are of one engine, whose mutex
// guards their links.
struct StreamState {
  std::mutex mutex;
  std::weak_ptr<Engine> engine;  // of the first operation; another's is refused while this one lives
  std::shared_ptr<Operation> tail;
  std::shared_ptr<WorkState> first_failed;
};

class Operation {
 public:
  explicit Operation(std::shared_ptr<CommunicatorState> communicator) : communicator_(std::move(communicator)) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  // Called once, when the operation heads its stream and its communicator's order.
  virtual void start() {}
  // Moves what can be moved, without blocking; true if anything did. Throws rondo::Error, or executor::ForeignMessage;
  // what it throws, as pump() does, it throws again when called again.
  virtual bool advance() = 0;
  virtual bool done() const = 0;
  virtual void pump() {}
  virtual void arm() {}
  virtual std::string describe() const = 0;
  virtual std::string progress() const = 0;
  // The communicator's number of this collective; 0 for point-to-point.
  virtual std::uint64_t sequence() const { return 0; }
  virtual void ended(bool /*failed*/) {}

  CommunicatorState& communicator() const { return *communicator_; }
  bool try_own() { return !owned_.exchange(true, std::memory_order_acquire); }  // pairs with disown()
  void disown() { owned_.store(false, std::memory_order_release); }
  bool is_owned() const { return owned_.load(std::memory_order_relaxed); }

  // How time treats the operation; the owner's.
  struct Timing {
    bool started = false;
    base::Nanoseconds limit = 0;  // the deadline, from start on
    base::Nanoseconds deadline = base::never;
    base::Nanoseconds next_inquiry = base::never;
    base::Nanoseconds inquiry_interval = 0;
    base::Nanoseconds verdict = base::never;  // the deadline has passed; peers have until then to say where they are
    base::Nanoseconds foreign_until =
        base::never;  // a foreign message or a broken path was found; the board has until then to explain it
    std::optional<Error> foreign;  // what to say if it doesn't
  } timing;

  // Guarded by the engine's mutex.
  bool submitted = false;  // until then its links are not complete: nobody may step it
  int blockers = 0;
  bool finished = false;
  std::vector<std::shared_ptr<Operation>> successors;
  std::shared_ptr<WorkState> work;
  std::shared_ptr<StreamState> stream;

 private:
  std::shared_ptr<CommunicatorState> communicator_;
  std::atomic<bool> owned_{false};
};

}  // namespace rondo::engine
