// The loop of every reduction, compiled once for every instruction set.
//
// Kernel<Format, Op, scales> combines any number of sources into any number of destinations. A block of a few vectors
// is taken through all sources while its accumulators stay in registers, so each source is read once and each
// destination written once, whatever the fan-in. Counts below one vector take a path of their own, at once. The
// remainder of larger counts is computed as the last full vector of the range, overlapping the one before it; in place,
// that must happen before the main loop overwrites its sources, so it is computed first and stored last (the same for
// the vector before the first aligned address when streaming).
#if defined(RONDO_EXECUTOR_REDUCE_KERNEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_EXECUTOR_REDUCE_KERNEL_INL
#undef RONDO_EXECUTOR_REDUCE_KERNEL_INL
#else
#define RONDO_EXECUTOR_REDUCE_KERNEL_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "executor/reduce/formats-inl.hpp"
#include "executor/reduce/operators-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rondo::executor {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At least `size` and at most twice as many bytes, by two moves that may overlap; both are loaded before either is
// stored.
template <std::size_t size>
HWY_INLINE void copy_two(std::uint8_t* destination, const std::uint8_t* source, std::size_t bytes) {
  std::uint8_t first[size], last[size];
  std::memcpy(first, source, size);
  std::memcpy(last, source + bytes - size, size);
  std::memcpy(destination, first, size);
  std::memcpy(destination + bytes - size, last, size);
}
// Fewer than `limit` bytes, 64 at most.
template <std::size_t limit>
HWY_INLINE void copy_short(std::uint8_t* destination, const std::uint8_t* source, std::size_t bytes) {
  if constexpr (limit > 32) {
    if (bytes >= 32) return copy_two<32>(destination, source, bytes);
  }
  if constexpr (limit > 16) {
    if (bytes >= 16) return copy_two<16>(destination, source, bytes);
  }
  if constexpr (limit > 8) {
    if (bytes >= 8) return copy_two<8>(destination, source, bytes);
  }
  if constexpr (limit > 4) {
    if (bytes >= 4) return copy_two<4>(destination, source, bytes);
  }
  if constexpr (limit > 2) {
    if (bytes >= 2) return copy_two<2>(destination, source, bytes);
  }
  if (bytes == 1) *destination = *source;
}

// Keeps the compiler from fusing a product with the sum that follows: results must not depend on the instruction set.
template <class V>
HWY_INLINE void keep_rounded(V& value) {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  asm("" : "+v"(value.raw));
#elif HWY_ARCH_ARM_A64 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  asm("" : "+w"(value.raw));
#else
  (void)value;
#endif
}

template <class Format, class Op, bool scales = false>
class Kernel {
 public:
  static void run(const ReduceArguments& a) { start(a, 1); }
  static void run_average(const ReduceArguments& a) { start(a, a.divisor); }

  // For operators that do not care where an element begins: elements of `size` bytes as bytes.
  template <std::size_t size>
  static void run_bytes(const ReduceArguments& a) {
    ReduceArguments bytes = a;
    bytes.count *= size;
    start(bytes, 1);
  }

 private:
  using T = typename Format::Storage;
  using Lane = typename Format::Lane;
  using Tag = typename Format::Tag;
  using Raw = typename Format::Raw;
  using Accumulator = typename Format::Accumulator;
  static constexpr std::size_t width = HWY_LANES(T);
  // Four vectors of accumulators a block: enough independent work to hide the latency of an addition.
  static constexpr std::size_t block = Format::parts >= 4 ? 1 : 4 / Format::parts;

  struct Call {
    const ReduceArguments& arguments;
    std::uint32_t divisor;
    Lane factor;
  };

  static HWY_INLINE const T* at(const void* base, std::size_t index) {
    return reinterpret_cast<const T*>(static_cast<const std::uint8_t*>(base) + index * sizeof(T));
  }
  static HWY_INLINE T* at(void* base, std::size_t index) {
    return reinterpret_cast<T*>(static_cast<std::uint8_t*>(base) + index * sizeof(T));
  }

  static HWY_INLINE Raw load(const T* from) {
#if HWY_TARGET == HWY_SCALAR
    T value;
    std::memcpy(&value, from, sizeof(T));
    return hn::Set(Tag(), value);
#else
    return hn::LoadU(Tag(), from);
#endif
  }
  static HWY_INLINE void store(Raw value, T* to) {
#if HWY_TARGET == HWY_SCALAR
    const T lane = hn::GetLane(value);
    std::memcpy(to, &lane, sizeof(T));
#else
    hn::StoreU(value, Tag(), to);
#endif
  }

  // The first `count` < width elements; the others are zero.
  static HWY_INLINE Raw load_partial(const T* from, std::size_t count) {
    const Tag d;
    if constexpr (masks_loads) {
      return hn::MaskedLoad(hn::FirstN(d, count), d, from);
    } else {
      HWY_ALIGN T lanes[width] = {};
      copy_short<width * sizeof(T)>(reinterpret_cast<std::uint8_t*>(lanes), reinterpret_cast<const std::uint8_t*>(from),
                                    count * sizeof(T));
      return hn::Load(d, lanes);
    }
  }
  static HWY_INLINE void store_partial(Raw value, T* to, std::size_t count) {
    const Tag d;
    if constexpr (masks_stores) {
      hn::BlendedStore(value, hn::FirstN(d, count), d, to);
    } else {
      HWY_ALIGN T lanes[width];
      hn::Store(value, d, lanes);
      copy_short<width * sizeof(T)>(reinterpret_cast<std::uint8_t*>(to), reinterpret_cast<const std::uint8_t*>(lanes),
                                    count * sizeof(T));
    }
  }
#if HWY_TARGET == HWY_AVX3
  static constexpr bool masks_loads = true;
  static constexpr bool masks_stores = true;
#elif HWY_TARGET == HWY_AVX2
  static constexpr bool masks_loads = sizeof(T) >= 4;
  static constexpr bool masks_stores = false;  // microcoded on AMD before Zen 4
#else
  static constexpr bool masks_loads = false;
  static constexpr bool masks_stores = false;
#endif

  static HWY_INLINE Accumulator contribution(const Call& call, std::size_t source, Raw raw) {
    Accumulator value = Format::expand(raw);
    if constexpr (scales) {
      const Lane factor = call.arguments.scaled[source] != 0 ? call.factor : Lane{1};
      for (int k = 0; k < Format::parts; ++k) {
        value.part[k] = hn::Mul(value.part[k], hn::Set(hn::ScalableTag<Lane>(), factor));
        keep_rounded(value.part[k]);
      }
    } else {
      (void)call;
      (void)source;
    }
    return value;
  }
  static HWY_INLINE void combine(Accumulator& sum, const Accumulator& next) {
    for (int k = 0; k < Format::parts; ++k) sum.part[k] = Op::apply(sum.part[k], next.part[k]);
  }
  static HWY_INLINE Raw finish(const Call& call, Accumulator& value) {
    if (divides && call.divisor != 1) Format::divide(value, call.divisor);
    return Format::contract(value);
  }
  static constexpr bool divides = hwy::IsSame<Op, Sum>() && !scales;

  static HWY_INLINE Raw one(const Call& call, std::size_t index) {
    const ReduceArguments& a = call.arguments;
    Accumulator value = contribution(call, 0, load(at(a.sources[0], index)));
    for (std::size_t s = 1; s < a.source_count; ++s) {
      combine(value, contribution(call, s, load(at(a.sources[s], index))));
    }
    return finish(call, value);
  }
  static HWY_INLINE void store_all(const Call& call, Raw value, std::size_t index) {
    const ReduceArguments& a = call.arguments;
    for (std::size_t r = 0; r < a.destination_count; ++r) store(value, at(a.destinations[r], index));
  }

  static HWY_INLINE void start(const ReduceArguments& a, std::uint32_t divisor) {
    const Call call{a, divisor, static_cast<Lane>(a.factor)};
    if (a.count < width) {
      if (a.count != 0) small(call);
    } else {
      large(call);
    }
  }

  static HWY_NOINLINE void small(const Call& call) {
    const ReduceArguments& a = call.arguments;
    Accumulator value = contribution(call, 0, load_partial(at(a.sources[0], 0), a.count));
    for (std::size_t s = 1; s < a.source_count; ++s) {
      combine(value, contribution(call, s, load_partial(at(a.sources[s], 0), a.count)));
    }
    const Raw result = finish(call, value);
    for (std::size_t r = 0; r < a.destination_count; ++r) store_partial(result, at(a.destinations[r], 0), a.count);
  }

  static HWY_NOINLINE void large(const Call& call) {
    const ReduceArguments& a = call.arguments;
    const std::size_t count = a.count;
    const bool scaled = scales && a.scaled[0] != 0;
    if (a.source_count == 1 && !scaled && !(divides && call.divisor != 1)) {
      copy(a.sources[0], a.destinations, a.destination_count, count * sizeof(T), a.stream_first_destination);
      return;
    }
    const std::size_t address = reinterpret_cast<std::uintptr_t>(a.destinations[0]);
    const bool stream = can_stream && a.stream_first_destination && address % sizeof(T) == 0 && count >= 4 * width;
    // Elements before the first address that a streaming store can take.
    const std::size_t begin = stream ? (0 - address) % (width * sizeof(T)) / sizeof(T) : 0;
    const bool tail = (count - begin) % width != 0;
    Raw first = hn::Zero(Tag()), last = first;
    if (begin != 0) first = one(call, 0);
    if (tail) last = one(call, count - width);
    main(call, begin, stream);
    if (begin != 0) store_all(call, first, 0);
    if (tail) store_all(call, last, count - width);
    if (stream) hwy::FlushStream();
  }
  static constexpr bool can_stream = width * sizeof(T) >= 16;

  // All whole vectors from `index` on. The loops for few sources keep their pointers in registers; sums only, because
  // the others are rare and each loop is compiled for all instruction sets.
  static HWY_INLINE void main(const Call& call, std::size_t index, bool stream) {
    const ReduceArguments& a = call.arguments;
    if constexpr (divides && HWY_TARGET != HWY_SCALAR) {
      if (a.destination_count == 1) {
        if (a.source_count == 2) return loop<2, 1>(call, index, stream);
        if (a.source_count == 3) return loop<3, 1>(call, index, stream);
        if (a.source_count == 4) return loop<4, 1>(call, index, stream);
      } else if (a.destination_count == 2) {
        if (a.source_count == 2) return loop<2, 2>(call, index, stream);
        if (a.source_count == 3) return loop<3, 2>(call, index, stream);
        if (a.source_count == 4) return loop<4, 2>(call, index, stream);
      }
    }
    loop<0, 0>(call, index, stream);
  }

  // Number of sources and destinations, 0: any.
  template <std::size_t fixed_sources, std::size_t fixed_destinations>
  static HWY_NOINLINE void loop(const Call& call, std::size_t index, bool stream) {
    const ReduceArguments& a = call.arguments;
    const std::size_t count = a.count;
    const std::size_t sources = fixed_sources != 0 ? fixed_sources : a.source_count;
    const std::size_t destinations = fixed_destinations != 0 ? fixed_destinations : a.destination_count;
    const void* source[fixed_sources != 0 ? fixed_sources : 1];
    void* destination[fixed_destinations != 0 ? fixed_destinations : 1];
    for (std::size_t s = 0; s < fixed_sources; ++s) source[s] = a.sources[s];
    for (std::size_t r = 0; r < fixed_destinations; ++r) destination[r] = a.destinations[r];
    for (; index + block * width <= count; index += block * width) {
      Accumulator value[block];
      const T* from = at(fixed_sources != 0 ? source[0] : a.sources[0], index);
      for (std::size_t k = 0; k < block; ++k) value[k] = contribution(call, 0, load(from + k * width));
      for (std::size_t s = 1; s < sources; ++s) {
        from = at(fixed_sources != 0 ? source[s] : a.sources[s], index);
        for (std::size_t k = 0; k < block; ++k) combine(value[k], contribution(call, s, load(from + k * width)));
      }
      Raw result[block];
      for (std::size_t k = 0; k < block; ++k) result[k] = finish(call, value[k]);
      for (std::size_t r = 0; r < destinations; ++r) {
        T* to = at(fixed_destinations != 0 ? destination[r] : a.destinations[r], index);
        if (can_stream && r == 0 && stream) {
          for (std::size_t k = 0; k < block; ++k) hn::Stream(result[k], Tag(), to + k * width);
        } else {
          for (std::size_t k = 0; k < block; ++k) store(result[k], to + k * width);
        }
      }
    }
    for (; index + width <= count; index += width) store_all(call, one(call, index), index);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace rondo::executor
HWY_AFTER_NAMESPACE();

#endif
