// One call of an even collective, and what its output must be: computed element by element from what the ranks
// contribute, by the reduction tests' oracle. Contributions are such that every order of reduction gives the same bits.
#pragma once

#include <rondo/rondo.hpp>

#include "reduce/reduce_oracle.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

namespace rondo {

struct EvenCall {
  Collective collective = Collective::all_reduce;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;
  int root = 0;
};

enum class Place : std::uint8_t { plain, in_place, window, window_in_place };
inline constexpr int place_count = 4;

inline bool reduces(Collective c) {
  return c == Collective::all_reduce || c == Collective::reduce || c == Collective::reduce_scatter;
}
inline bool rooted(Collective c) {
  return c == Collective::broadcast || c == Collective::reduce || c == Collective::gather || c == Collective::scatter;
}

template <class F>
auto with_oracle(DataType type, F f) {
  using namespace executor::oracle;
  switch (type) {
    case DataType::int8: return f(Integer<std::int8_t>{});
    case DataType::uint8: return f(Integer<std::uint8_t>{});
    case DataType::int32: return f(Integer<std::int32_t>{});
    case DataType::uint32: return f(Integer<std::uint32_t>{});
    case DataType::int64: return f(Integer<std::int64_t>{});
    case DataType::uint64: return f(Integer<std::uint64_t>{});
    case DataType::float16: return f(Float<float16>{});
    case DataType::bfloat16: return f(Float<bfloat16>{});
    case DataType::float32: return f(Float<float>{});
    case DataType::float64: return f(Float<double>{});
    case DataType::float8_e4m3: return f(Float<float8_e4m3>{});
    case DataType::float8_e5m2: break;
  }
  return f(Float<float8_e5m2>{});
}

template <class T>
T element_of(int value) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(value);
  else return executor::oracle::narrow<T>(static_cast<float>(value));
}

inline std::uint64_t mixed(int rank, std::size_t index) {
  std::uint64_t h = (index + 1) * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(rank) * 0xD6E8FEB86659FD93ULL;
  h ^= h >> 29;
  h *= 0xBF58476D1CE4E5B9ULL;
  return h ^ (h >> 32);
}

inline double factor_of(int rank) { return rank % 2 == 0 ? 1.0 : 2.0; }

// Element `index` of what `rank` contributes.
template <class T>
T contribution(const EvenCall& call, int rank, std::size_t index) {
  const std::uint64_t h = mixed(rank, index);
  const int small = static_cast<int>(h % 3);
  constexpr bool is_unsigned = std::is_unsigned_v<T>;
  if (!reduces(call.collective) || is_bitwise(call.op)) {  // any bits at all
    T value;
    std::memcpy(&value, &h, sizeof value);
    return value;
  }
  switch (call.op) {
    case ReduceOp::prod:
      return element_of<T>(is_unsigned ? small + 1 : small == 0 ? -1 : small == 1 && rank < 2 ? 2 : 1);
    case ReduceOp::min:
    case ReduceOp::max: return element_of<T>(static_cast<int>(h % 9) - (is_unsigned ? 0 : 4));
    default: return element_of<T>(is_unsigned ? small : small - 1);
  }
}

// Elements this rank reads and writes; where the output lies relative to the input in place.
struct Geometry {
  std::size_t input = 0, output = 0;
  std::ptrdiff_t output_from_input = 0;
};
inline Geometry geometry_of(const EvenCall& call, int rank, int size) {
  const std::size_t one = call.count, all = call.count * static_cast<std::size_t>(size);
  const auto mine = static_cast<std::ptrdiff_t>(call.count) * rank;
  const bool is_root = rank == call.root;
  switch (call.collective) {
    case Collective::all_gather: return {one, all, -mine};
    case Collective::reduce_scatter: return {all, one, mine};
    case Collective::broadcast: return {is_root ? one : 0, one, 0};
    case Collective::reduce: return {one, is_root ? one : 0, 0};
    case Collective::all_to_all: return {all, all, 0};
    case Collective::gather: return {one, is_root ? all : 0, -mine};
    case Collective::scatter: return {is_root ? all : 0, one, mine};
    default: return {one, one, 0};
  }
}

template <class Oracle>
typename Oracle::Storage expected(const EvenCall& call, int rank, int size, std::size_t index) {
  using T = typename Oracle::Storage;
  const auto at = [&](int r, std::size_t i) { return contribution<T>(call, r, i); };
  const std::size_t mine = static_cast<std::size_t>(rank) * call.count;
  switch (call.collective) {
    case Collective::all_gather:
    case Collective::gather: return at(static_cast<int>(index / call.count), index % call.count);
    case Collective::all_to_all: return at(static_cast<int>(index / call.count), mine + index % call.count);
    case Collective::broadcast: return at(call.root, index);
    case Collective::scatter: return at(call.root, mine + index);
    default: break;
  }
  const std::size_t from = call.collective == Collective::reduce_scatter ? mine + index : index;
  T values[64]{};
  for (int r = 0; r < size; ++r) {
    values[r] = at(r, from);
    if (call.op == ReduceOp::scaled_sum && factor_of(r) != 1.0) {
      const T term = values[r];
      const T pair[2] = {term, term};
      values[r] = Oracle::combine(ReduceOp::sum, pair, {});
    }
  }
  executor::oracle::Terms terms;
  terms.divisor = static_cast<std::uint32_t>(size);
  return Oracle::combine(call.op == ReduceOp::scaled_sum ? ReduceOp::sum : call.op,
                         {values, static_cast<std::size_t>(size)}, terms);
}

// Memory for calls: plain pages, or a window (which every rank must then make).
class Room {
 public:
  Room(Communicator& comm, std::size_t bytes, bool window) : plain_(window ? 0 : bytes) {
    if (window) window_ = comm.allocate_bytes(bytes);
  }
  std::byte* data() { return plain_.empty() ? window_.data() : plain_.data(); }

 private:
  std::vector<std::byte> plain_;
  WindowMemory window_;
};

// Room that any call of up to `bytes` on its larger side fits into, with offsets up to 4096.
inline std::size_t room_bytes(std::size_t bytes) { return 2 * bytes + 3 * 4096; }

inline Work issue(Communicator& comm, const EvenCall& call, const void* input, void* output,
                  const CallOptions& options = {}) {
  const Reduction op(call.op, factor_of(comm.rank()));
  switch (call.collective) {
    case Collective::all_reduce: return comm.all_reduce(input, output, call.count, call.type, op, options);
    case Collective::all_gather: return comm.all_gather(input, output, call.count, call.type, options);
    case Collective::reduce_scatter: return comm.reduce_scatter(input, output, call.count, call.type, op, options);
    case Collective::broadcast: return comm.broadcast(input, output, call.count, call.type, call.root, options);
    case Collective::reduce: return comm.reduce(input, output, call.count, call.type, op, call.root, options);
    case Collective::all_to_all: return comm.all_to_all(input, output, call.count, call.type, options);
    case Collective::gather: return comm.gather(input, output, call.count, call.type, call.root, options);
    case Collective::scatter: return comm.scatter(input, output, call.count, call.type, call.root, options);
    default: return comm.barrier(options);
  }
}

// A call laid out in memory: prepare() writes the input, wrong() counts wrong elements afterwards, those of the input
// that changed (out of place), and bytes beside the output that changed.
class LaidOut {
 public:
  // `offset` bytes into `room`.
  LaidOut(const Communicator& comm, const EvenCall& call, std::byte* room, std::size_t offset, bool in_place)
      : call_(call), rank_(comm.rank()), size_(comm.size()), geometry_(geometry_of(call, rank_, size_)) {
    const std::size_t element = size_of(call.type);
    const std::size_t in = geometry_.input * element, out = geometry_.output * element;
    in_place_ = in_place && in > 0 && out > 0;
    std::byte* begin = room + 64 + offset;
    if (in_place_) {
      const std::ptrdiff_t shift = geometry_.output_from_input * static_cast<std::ptrdiff_t>(element);
      input_ = shift < 0 ? begin - shift : begin;
      output_ = input_ + shift;
    } else {
      input_ = begin;
      output_ = begin + in + 64 + offset % 61;
    }
    with_oracle(call.type, [&](auto oracle) {
      using T = typename decltype(oracle)::Storage;
      std::memset(output_ - 16, 0x5A, out + 32);
      for (std::size_t i = 0; i < geometry_.input; ++i) {
        const T value = contribution<T>(call_, rank_, i);
        std::memcpy(input_ + i * sizeof(T), &value, sizeof value);
      }
    });
  }
  const std::byte* input() const { return input_; }
  std::byte* output() const { return output_; }

  std::size_t wrong() const {
    return with_oracle(call_.type, [&](auto oracle) {
      using T = typename decltype(oracle)::Storage;
      std::size_t bad = 0;
      for (std::size_t i = 0; i < geometry_.output; ++i) {
        T found;
        std::memcpy(&found, output_ + i * sizeof(T), sizeof found);
        const T right = expected<decltype(oracle)>(call_, rank_, size_, i);
        bad += reduces(call_.collective) ? !decltype(oracle)::same(call_.op, found, right)
                                         : std::memcmp(&found, &right, sizeof found) != 0;
      }
      if (in_place_) return bad;
      for (std::size_t i = 0; i < geometry_.input; ++i) {
        const T value = contribution<T>(call_, rank_, i);
        bad += std::memcmp(input_ + i * sizeof(T), &value, sizeof value) != 0;
      }
      for (std::size_t i = 1; i <= 16; ++i) bad += *(output_ - i) != std::byte{0x5A};
      for (std::size_t i = 0; i < 16; ++i) bad += output_[geometry_.output * sizeof(T) + i] != std::byte{0x5A};
      return bad;
    });
  }

 private:
  EvenCall call_;
  int rank_;
  int size_;
  Geometry geometry_;
  bool in_place_ = false;
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
};

// Lays out, calls, and says how many elements are wrong.
inline std::size_t wrong_elements(Communicator& comm, const EvenCall& call, std::byte* room, std::size_t offset = 0,
                                  bool in_place = false) {
  const LaidOut laid(comm, call, room, offset, in_place);
  issue(comm, call, laid.input(), laid.output());
  return laid.wrong();
}

}  // namespace rondo
