// Work: a handle on a started operation. Stream: an in-order queue of operations.
#pragma once

#include <rondo/export.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

namespace rondo {

namespace engine {
struct WorkState;
struct StreamState;
}  // namespace engine

enum class WorkStatus : std::uint8_t { pending, completed, failed };

// Copyable and thread-safe; outlives its communicator. A default-made Work, and one that a blocking call returned, is
// completed.
class RONDO_API Work {
 public:
  Work() noexcept;
  explicit Work(std::shared_ptr<engine::WorkState> state) noexcept;
  Work(const Work&);
  Work& operator=(const Work&);
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  // Returns once the operation has completed, stepping it on this thread meanwhile. Throws the operation's Error.
  // Inside a group, which starts nothing before it is submitted, waiting for a pending operation is refused with
  // Error(invalid_usage).
  void wait() const;
  // As wait(), for at most `limit`; false if the operation is still pending then (it goes on).
  bool wait_for(std::chrono::nanoseconds limit) const;
  WorkStatus status() const noexcept;
  // The operation's error, or null.
  std::exception_ptr error() const;
  // Calls `callback` once, when the operation has completed or failed: on this thread if it has already, else on the
  // one that ends it, which is often the library's own. So it must neither block nor throw nor call the library; it may
  // let another thread know. Several may be given; they are called in that order.
  void on_end(std::function<void()> callback) const;
  // For a receive: the rank that sent (useful with receive from any), and the bytes that came. -1 and 0 otherwise.
  int source() const noexcept;
  std::size_t bytes() const noexcept;

 private:
  std::shared_ptr<engine::WorkState> state_;
};

// Operations on one stream start in order, each after the one before has completed. Operations on different streams may
// overlap, except that collectives of one communicator always run in the order in which they were issued. A stream
// serves communicators that were split from each other; one of another world is refused with Error(invalid_usage).
// Copyable: copies name the same queue.
class RONDO_API Stream {
 public:
  Stream();
  Stream(const Stream&);
  Stream& operator=(const Stream&);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();
  // Waits for everything issued on this stream so far; throws the first error among it. Refused inside a group, as
  // Work::wait().
  void synchronize() const;
  const std::shared_ptr<engine::StreamState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<engine::StreamState> state_;
};

// How one call is to be made. Without a stream the call blocks and the Work it returns is completed; with one it
// returns at once, and the buffers belong to the operation until the Work has completed.
struct CallOptions {
  const Stream* stream = nullptr;
  std::chrono::nanoseconds deadline{0};  // 0: the communicator's; counted from when the operation heads its stream
};

}  // namespace rondo
