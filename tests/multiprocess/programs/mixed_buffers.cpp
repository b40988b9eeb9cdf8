// Ranks that mix plain, window and in-place buffers at random offsets: mixed_buffers SEED ROUNDS. Values are small
// whole numbers, so that sums are exact in any order; every collective is checked whole, and so are the guards around
// the output. Prints "WRONG ..." and exits with 1, or "RIGHT <calls>" and exits with 0.
#include <rondo/rondo.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using Value = std::int32_t;
using rondo::Collective;

constexpr Value guard = -77'777'777;
constexpr std::size_t margin = 64;  // elements before and behind a buffer
constexpr std::size_t largest_count = 15'000;

Value value_of(std::uint64_t round, int rank, std::size_t i) {
  return static_cast<Value>((round * 31 + static_cast<std::uint64_t>(rank) * 7 + i * 3) % 1000);
}

struct Memory {
  std::size_t elements;
  std::vector<Value> plain;
  rondo::Window<Value> window;

  explicit Memory(rondo::Communicator& world)
      : elements(largest_count * static_cast<std::size_t>(world.size()) + 3 * margin),
        plain(elements),
        window(world.allocate<Value>(elements)) {}
};

struct Sizes {
  std::size_t input;
  std::size_t output;
};

class Test {
 public:
  explicit Test(rondo::Communicator& world)
      : world_(world),
        n_(static_cast<std::size_t>(world.size())),
        me_(static_cast<std::size_t>(world.rank())),
        first_(world),
        second_(world) {}

  bool run(std::uint64_t seed, int rounds) {
    std::mt19937_64 common(seed);  // the same on all ranks
    std::mt19937_64 own(seed * 1000 + me_);
    constexpr Collective collectives[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                          Collective::broadcast,  Collective::reduce,     Collective::all_to_all,
                                          Collective::gather,     Collective::scatter};
    constexpr std::size_t counts[] = {0, 1, 3, 17, 255, 1024, 4099, largest_count};
    for (int round = 0; round < rounds; ++round) {
      const Collective collective = collectives[common() % std::size(collectives)];
      const std::size_t count = counts[common() % std::size(counts)];
      const int root = static_cast<int>(common() % n_);
      if (!call(static_cast<std::uint64_t>(round), collective, count, root, own)) return false;
    }
    return true;
  }

 private:
  Sizes sizes(Collective c, std::size_t count) const {
    switch (c) {
      case Collective::all_gather:
      case Collective::gather: return {count, count * n_};
      case Collective::reduce_scatter:
      case Collective::scatter: return {count * n_, count};
      case Collective::all_to_all: return {count * n_, count * n_};
      default: return {count, count};
    }
  }
  // Where the smaller side lies in the larger one, in place.
  std::size_t own_block(Collective c, std::size_t count) const {
    const bool blocks = c == Collective::all_gather || c == Collective::gather || c == Collective::reduce_scatter ||
                        c == Collective::scatter;
    return blocks ? me_ * count : 0;
  }
  bool writes(Collective c, int root) const {
    return (c != Collective::reduce && c != Collective::gather) || world_.rank() == root;
  }
  Value expected(std::uint64_t round, Collective c, std::size_t count, int root, std::size_t i) const {
    const auto sum = [&](std::size_t at) {
      Value total = 0;
      for (int r = 0; r < world_.size(); ++r) total += value_of(round, r, at);
      return total;
    };
    switch (c) {
      case Collective::all_reduce:
      case Collective::reduce: return sum(i);
      case Collective::reduce_scatter: return sum(me_ * count + i);
      case Collective::all_gather:
      case Collective::gather: return value_of(round, static_cast<int>(i / count), i % count);
      case Collective::broadcast: return value_of(round, root, i);
      case Collective::scatter: return value_of(round, root, me_ * count + i);
      case Collective::all_to_all: return value_of(round, static_cast<int>(i / count), me_ * count + i % count);
      default: return 0;
    }
  }
  void issue(Collective c, const Value* in, Value* out, std::size_t count, int root) {
    constexpr auto type = rondo::DataType::int32;
    constexpr auto sum = rondo::ReduceOp::sum;
    switch (c) {
      case Collective::all_reduce: world_.all_reduce(in, out, count, type, sum); break;
      case Collective::all_gather: world_.all_gather(in, out, count, type); break;
      case Collective::reduce_scatter: world_.reduce_scatter(in, out, count, type, sum); break;
      case Collective::broadcast: world_.broadcast(in, out, count, type, root); break;
      case Collective::reduce: world_.reduce(in, out, count, type, sum, root); break;
      case Collective::all_to_all: world_.all_to_all(in, out, count, type); break;
      case Collective::gather: world_.gather(in, out, count, type, root); break;
      case Collective::scatter: world_.scatter(in, out, count, type, root); break;
      default: std::abort();
    }
  }
  bool call(std::uint64_t round, Collective c, std::size_t count, int root, std::mt19937_64& own) {
    const Sizes size = sizes(c, count);
    const bool in_place = own() % 3 == 0;
    const auto place = [&](Memory& memory) {
      Value* const base = own() % 2 == 0 ? memory.plain.data() : memory.window.data();
      return base + margin + own() % margin;
    };
    Value* const larger = place(first_);
    Value* input = larger;
    Value* output = place(second_);
    if (in_place) {
      input = larger + (size.input < size.output ? own_block(c, count) : 0);
      output = larger + (size.output < size.input ? own_block(c, count) : 0);
    }
    std::fill_n(output - margin / 2, size.output + margin, guard);
    if (!in_place) std::fill_n(input - margin / 2, size.input + margin, guard);
    for (std::size_t i = 0; i < size.input; ++i) input[i] = value_of(round, world_.rank(), i);
    issue(c, input, output, count, root);
    const auto wrong = [&](const char* what, std::size_t i, Value got, Value want) {
      std::printf("WRONG round %llu %s of %zu root %d%s: %s %zu is %d, not %d\n",
                  static_cast<unsigned long long>(round), std::string(name_of(c)).c_str(), count, root,
                  in_place ? " in place" : "", what, i, got, want);
      std::fflush(stdout);
      return false;
    };
    if (writes(c, root)) {
      for (std::size_t i = 0; i < size.output; ++i) {
        const Value want = expected(round, c, count, root, i);
        if (output[i] != want) return wrong("output", i, output[i], want);
      }
    }
    if (!in_place) {
      for (std::size_t i = 0; i < size.input; ++i) {
        if (input[i] != value_of(round, world_.rank(), i)) return wrong("input", i, input[i], 0);
      }
      for (std::size_t i = 0; i < margin / 2; ++i) {
        const Value before = *(output - 1 - i);
        const Value behind = output[size.output + i];
        if (before != guard || behind != guard) return wrong("guard", i, before == guard ? behind : before, guard);
      }
    }
    return true;
  }

  rondo::Communicator& world_;
  std::size_t n_;
  std::size_t me_;
  Memory first_;
  Memory second_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    rondo::Communicator world = rondo::Communicator::from_environment();
    {
      Test test(world);
      const int rounds = std::atoi(argv[2]);
      if (!test.run(static_cast<std::uint64_t>(std::atoll(argv[1])), rounds)) return 1;
      world.barrier();
      std::printf("RIGHT %d\n", rounds);
    }
    world.close();
    return 0;
  } catch (const rondo::Error& error) {
    std::printf("ERROR %s\n", error.what());
    return 3;
  }
}
