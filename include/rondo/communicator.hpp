// Communicator: a set of ranks and the collectives among them. The library's main type.
//
// Threads: one communicator may be used from several threads, but collectives must be issued in the same order on every
// rank, so callers order them. Different communicators are independent. abort() may be called from any thread at any
// time.
//
// Buffers: counts are in elements of `type`. Ranges that a call reads and ranges that it writes must not overlap,
// except for the in-place form given with each collective. A null pointer is accepted only with a count of zero. An
// argument that can be judged alone is refused at once with Error(invalid_argument) and the communicator stays usable;
// ranks that differ in operation, count, type, operator, root or order all get Error(mismatch) naming both sides.
// Split, allocate and close have their place in that order: a rank that is in one while a peer goes on only after a
// collective that this rank has not called is a mismatch too (once that has lasted half a second). A rank that merely
// polls its Work could still come, so there the deadline decides.
//
// Errors: after any error other than invalid_argument the communicator is poisoned on all ranks: every call throws that
// error again, until it is destroyed.
#pragma once

#include <rondo/config.hpp>
#include <rondo/error.hpp>
#include <rondo/export.hpp>
#include <rondo/types.hpp>
#include <rondo/unique_id.hpp>
#include <rondo/window.hpp>
#include <rondo/work.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace rondo {

namespace communicator {
class Implementation;
}

// Where a rank goes in a split. Ranks of one color form a communicator, ordered by key, then by old rank. A rank
// without color takes part in the call and gets none.
struct SplitOptions {
  std::optional<int> color = 0;
  int key = 0;
  std::string name = {};
};

inline constexpr int any_source = -1;

// What an element type a span may carry is: one with a DataType.
template <class T>
concept Element = requires {
  DataTypeOf<std::remove_cv_t<T>>::value;
};

class RONDO_API Communicator {
 public:
  // Joins the ranks that the launcher's environment describes (rondo run, torchrun, mpirun, srun). Collective: all
  // ranks join, or all throw.
  static Communicator from_environment(const Config& config = {});
  // Joins as `rank` of `size` the ranks that hold the same id.
  static Communicator create(const UniqueId& id, int rank, int size, const Config& config = {});
  // `size` ranks in this process, for one thread each; they share one address space.
  static std::vector<Communicator> create_local(int size, const Config& config = {});

  Communicator() noexcept;
  explicit Communicator(std::shared_ptr<communicator::Implementation> implementation) noexcept;
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  // Closes if the communicator is healthy, aborts while unwinding or after an error. Never throws.
  ~Communicator();

  int rank() const noexcept;
  int size() const noexcept;
  const std::string& name() const noexcept;

  // Collective over this communicator. An empty optional for a rank without color.
  std::optional<Communicator> split(const SplitOptions& options);
  // Collective: waits for this rank's operations, says goodbye, and returns once all ranks have (within the deadline).
  void close();
  // Ends every wait on every rank with Error(aborted). Never blocks.
  void abort(const std::string& reason = "abort() was called") noexcept;
  // Throws the error that poisoned this communicator, if any.
  void check() const;

  // Untyped forms. `count` as each says; see the typed forms below.
  // output[i] = reduction over ranks of input[i]. In place: input == output.
  Work all_reduce(const void* input, void* output, std::size_t count, DataType type, Reduction op = {},
                  const CallOptions& options = {});
  // output[r * count + i] = input[i] of rank r. In place: input == output + rank * count.
  Work all_gather(const void* input, void* output, std::size_t count, DataType type, const CallOptions& options = {});
  // output[i] = reduction over ranks of input[rank * count + i]. In place: output == input + rank * count.
  Work reduce_scatter(const void* input, void* output, std::size_t count, DataType type, Reduction op = {},
                      const CallOptions& options = {});
  // output = root's input. input is read on the root only; in place: input == output.
  Work broadcast(const void* input, void* output, std::size_t count, DataType type, int root,
                 const CallOptions& options = {});
  // root's output[i] = reduction over ranks of input[i]. output is written on the root only; in place: input == output.
  Work reduce(const void* input, void* output, std::size_t count, DataType type, Reduction op, int root,
              const CallOptions& options = {});
  // output[r * count + i] = rank r's input[rank * count + i]. In place: input == output.
  Work all_to_all(const void* input, void* output, std::size_t count, DataType type, const CallOptions& options = {});
  // root's output[r * count + i] = input[i] of rank r. In place on the root: input == output + root * count.
  Work gather(const void* input, void* output, std::size_t count, DataType type, int root,
              const CallOptions& options = {});
  // output[i] = root's input[rank * count + i]. In place on the root: output == input + root * count.
  Work scatter(const void* input, void* output, std::size_t count, DataType type, int root,
               const CallOptions& options = {});
  // Returns once every rank has called it.
  Work barrier(const CallOptions& options = {});

  // Uneven forms. counts and displacements are in elements, one a rank; they are copied before the call returns.
  // Every rank gives all counts. In place: input == output + displacements[rank].
  Work all_gather_v(const void* input, void* output, std::span<const std::size_t> counts,
                    std::span<const std::size_t> displacements, DataType type, const CallOptions& options = {});
  // Every rank gives all counts; input holds them back to back; rank r gets counts[r] elements.
  Work reduce_scatter_v(const void* input, void* output, std::span<const std::size_t> counts, DataType type,
                        Reduction op = {}, const CallOptions& options = {});
  // Rank s's send_counts[r] must equal rank r's receive_counts[s]; only the pair knows them. Not in place.
  Work all_to_all_v(const void* input, std::span<const std::size_t> send_counts,
                    std::span<const std::size_t> send_displacements, void* output,
                    std::span<const std::size_t> receive_counts, std::span<const std::size_t> receive_displacements,
                    DataType type, const CallOptions& options = {});
  // counts and displacements on the root only; `count` is this rank's own.
  Work gather_v(const void* input, std::size_t count, void* output, std::span<const std::size_t> counts,
                std::span<const std::size_t> displacements, DataType type, int root, const CallOptions& options = {});
  Work scatter_v(const void* input, std::span<const std::size_t> counts, std::span<const std::size_t> displacements,
                 void* output, std::size_t count, DataType type, int root, const CallOptions& options = {});

  // Point to point. Any int is a tag. Messages between two ranks with the same tag arrive in order. A blocking send may
  // return before the receive started only as far as the connection's buffers reach: use a Group for exchanges. A
  // receive takes exactly `count` elements: a message of another length or type is Error(mismatch). `source` may be
  // any_source.
  Work send(const void* data, std::size_t count, DataType type, int destination, int tag = 0,
            const CallOptions& options = {});
  Work receive(void* data, std::size_t count, DataType type, int source, int tag = 0, const CallOptions& options = {});

  // Window memory: collective, the same `bytes` on every rank.
  WindowMemory allocate_bytes(std::size_t bytes);
  template <Element T>
  Window<T> allocate(std::size_t count) {
    return Window<T>(allocate_bytes(count * sizeof(T)), count);
  }

  // What would run for this call, and why: one line a candidate.
  std::string explain(Collective collective, std::size_t count, DataType type) const;
  // The last operations of this rank with their progress, as JSON (docs/flight-recorder.md).
  std::string flight_record() const;

  // Typed forms.
  template <Element T>
  Work all_reduce(std::span<T> data, Reduction op = {}, const CallOptions& options = {}) {
    return all_reduce(data.data(), data.data(), data.size(), data_type_of<T>, op, options);
  }
  template <Element T>
  Work all_reduce(const Window<T>& data, Reduction op = {}, const CallOptions& options = {}) {
    return all_reduce(data.span(), op, options);
  }
  template <Element T>
  Work all_reduce(std::span<const T> input, std::span<T> output, Reduction op = {}, const CallOptions& options = {}) {
    require_equal("all_reduce", "output", output.size(), "input", input.size(), 1);
    return all_reduce(input.data(), output.data(), input.size(), data_type_of<T>, op, options);
  }
  template <Element T>
  Work all_gather(std::span<const T> input, std::span<T> output, const CallOptions& options = {}) {
    require_equal("all_gather", "output", output.size(), "input", input.size(), static_cast<std::size_t>(size()));
    return all_gather(input.data(), output.data(), input.size(), data_type_of<T>, options);
  }
  template <Element T>
  Work reduce_scatter(std::span<const T> input, std::span<T> output, Reduction op = {},
                      const CallOptions& options = {}) {
    require_equal("reduce_scatter", "input", input.size(), "output", output.size(), static_cast<std::size_t>(size()));
    return reduce_scatter(input.data(), output.data(), output.size(), data_type_of<T>, op, options);
  }
  template <Element T>
  Work broadcast(std::span<T> data, int root, const CallOptions& options = {}) {
    return broadcast(data.data(), data.data(), data.size(), data_type_of<T>, root, options);
  }
  template <Element T>
  Work all_to_all(std::span<const T> input, std::span<T> output, const CallOptions& options = {}) {
    require_equal("all_to_all", "output", output.size(), "input", input.size(), 1);
    require_multiple("all_to_all", input.size());
    return all_to_all(input.data(), output.data(), input.size() / static_cast<std::size_t>(size()), data_type_of<T>,
                      options);
  }
  template <Element T>
  Work send(std::span<T> data, int destination, int tag = 0, const CallOptions& options = {}) {
    return send(data.data(), data.size(), data_type_of<std::remove_cv_t<T>>, destination, tag, options);
  }
  template <Element T>
  Work receive(std::span<T> data, int source, int tag = 0, const CallOptions& options = {}) {
    return receive(data.data(), data.size(), data_type_of<T>, source, tag, options);
  }

  const std::shared_ptr<communicator::Implementation>& implementation() const noexcept { return implementation_; }

 private:
  void require_equal(const char* call, const char* what, std::size_t got, const char* other, std::size_t base,
                     std::size_t factor) const;
  void require_multiple(const char* call, std::size_t count) const;

  std::shared_ptr<communicator::Implementation> implementation_;
};

// Operations issued by this thread between construction and submit() (or destruction) start together; blocking ones are
// waited for there. Any communicators, streams and kinds may be mixed; send + receive in one group never deadlock.
// Groups nest: only the outermost submits. The destructor submits unless the stack is unwinding, and may throw.
class RONDO_API Group {
 public:
  Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() noexcept(false);
  // Starts everything and waits for the operations without a stream; throws the first error.
  void submit();

 private:
  bool submitted_ = false;
  int exceptions_;
};

}  // namespace rondo
