#include "sim/seed_run.hpp"

#include "algorithms/registry.hpp"
#include "base/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace rondo::testing {
namespace {

constexpr Nanoseconds microsecond = 1000;
constexpr Nanoseconds millisecond = 1'000'000;
// The shortest nap of a waiter: an operation without a fault that takes as long waited for a wake-up that was lost.
constexpr Nanoseconds nap = 5 * millisecond;
constexpr Nanoseconds detection_limit =
    1000 * millisecond;  // DESIGN: a closed control connection is an error within 1 s

// Loses the n-th wake-up of a word.
class LossySystem final : public sim::SimSystem {
 public:
  LossySystem(sim::Scheduler& scheduler, int rank, std::shared_ptr<std::uint64_t> left)
      : SimSystem(scheduler, rank), left_(std::move(left)) {}
  void futex_wake(std::atomic<std::uint32_t>& word) override {
    if (*left_ > 0 && --*left_ == 0) return;
    SimSystem::futex_wake(word);
  }

 private:
  std::shared_ptr<std::uint64_t> left_;
};

struct Plan {
  const algorithms::Algorithm* algorithm = nullptr;
  int ranks = 2;
  int hosts = 1;
  int root = 0;
  std::vector<std::size_t> counts;  // one an operation
  bool windows = false;
  bool streams = false;
  ReduceOp op = ReduceOp::sum;
  Phase phase = Phase::none;
  int victim = -1;
  std::size_t operation = 0;  // the one that the kill is near
  Nanoseconds kill_delay = 0;
};

std::size_t input_blocks(Collective c, int ranks) {
  const bool many = c == Collective::reduce_scatter || c == Collective::all_to_all || c == Collective::scatter;
  return many ? static_cast<std::size_t>(ranks) : 1;
}
std::size_t output_blocks(Collective c, int ranks) {
  const bool many = c == Collective::all_gather || c == Collective::all_to_all || c == Collective::gather;
  return many ? static_cast<std::size_t>(ranks) : 1;
}

Plan make_plan(sim::Random& random, const SeedOptions& options) {
  Plan plan;
  const auto all = algorithms::all();
  plan.algorithm = options.algorithm != nullptr ? options.algorithm : &all[random.below(all.size())];
  plan.ranks = static_cast<int>(random.between(2, 6));
  // A third each: one host, every rank its own, something between.
  const auto kind = random.below(3);
  plan.hosts = kind == 0 ? 1 : kind == 1 ? plan.ranks : static_cast<int>(random.between(1, plan.ranks));
  if (options.lose_credit != 0) plan.hosts = plan.ranks;
  plan.root = static_cast<int>(random.between(0, plan.ranks - 1));
  const auto operations = options.lose_credit != 0 ? 3 : random.between(1, 3);
  for (std::int64_t i = 0; i < operations; ++i) {
    constexpr std::size_t sizes[] = {0, 1, 3, 12, 100, 1000, 5000};
    const std::size_t base = sizes[random.below(options.lose_credit != 0 ? 5 : std::size(sizes))];
    plan.counts.push_back(base + random.below(base / 2 + 1));
  }
  plan.windows = random.one_in(3);
  plan.streams = random.one_in(4);
  constexpr ReduceOp ops[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::bxor};
  plan.op = ops[random.below(std::size(ops))];
  if (options.kills && !random.one_in(3)) {
    plan.phase = static_cast<Phase>(random.between(1, 4));
    plan.victim = static_cast<int>(random.between(0, plan.ranks - 1));
    plan.operation = random.below(plan.counts.size());
    plan.kill_delay = random.between(0, random.one_in(3) ? 150 * microsecond : 10 * microsecond);
  }
  return plan;
}

std::uint32_t value_of(std::size_t operation, int rank, std::size_t index) {
  std::uint32_t x = static_cast<std::uint32_t>(operation * 7919 + static_cast<std::size_t>(rank) * 104729 + index);
  x *= 2654435761U;
  return x ^ (x >> 15);
}

std::uint32_t combine(ReduceOp op, std::uint32_t a, std::uint32_t b) {
  switch (op) {
    case ReduceOp::min: return std::min(a, b);
    case ReduceOp::max: return std::max(a, b);
    case ReduceOp::bxor: return a ^ b;
    default: return a + b;
  }
}

// The definition of each collective (communicator.hpp), for the element at `index` of the output.
std::optional<std::uint32_t> expected(const Plan& plan, std::size_t operation, int rank, std::size_t index) {
  const std::size_t count = plan.counts[operation];
  const auto reduced = [&](std::size_t input) {
    std::uint32_t value = value_of(operation, 0, input);
    for (int r = 1; r < plan.ranks; ++r) value = combine(plan.op, value, value_of(operation, r, input));
    return value;
  };
  const auto me = static_cast<std::size_t>(rank);
  switch (plan.algorithm->collective) {
    case Collective::all_reduce: return reduced(index);
    case Collective::reduce_scatter: return reduced(me * count + index);
    case Collective::all_gather: return value_of(operation, static_cast<int>(index / count), index % count);
    case Collective::broadcast: return value_of(operation, plan.root, index);
    case Collective::all_to_all:
      return value_of(operation, static_cast<int>(index / count), me * count + index % count);
    case Collective::scatter: return value_of(operation, plan.root, me * count + index);
    case Collective::reduce: return rank == plan.root ? std::optional(reduced(index)) : std::nullopt;
    case Collective::gather:
      if (rank != plan.root) return std::nullopt;
      return value_of(operation, static_cast<int>(index / count), index % count);
    default: return std::nullopt;
  }
}

Work issue(Communicator& comm, const Plan& plan, std::size_t operation, const std::uint32_t* in, std::uint32_t* out,
           const CallOptions& how) {
  constexpr DataType type = DataType::uint32;
  const std::size_t count = plan.counts[operation];
  switch (plan.algorithm->collective) {
    case Collective::all_reduce: return comm.all_reduce(in, out, count, type, plan.op, how);
    case Collective::reduce_scatter: return comm.reduce_scatter(in, out, count, type, plan.op, how);
    case Collective::all_gather: return comm.all_gather(in, out, count, type, how);
    case Collective::broadcast: return comm.broadcast(in, out, count, type, plan.root, how);
    case Collective::all_to_all: return comm.all_to_all(in, out, count, type, how);
    case Collective::scatter: return comm.scatter(in, out, count, type, plan.root, how);
    case Collective::reduce: return comm.reduce(in, out, count, type, plan.op, plan.root, how);
    case Collective::gather: return comm.gather(in, out, count, type, plan.root, how);
    default: return comm.barrier(how);
  }
}

// What one rank lived through.
struct Story {
  std::optional<Error> error;
  std::string wrong;  // the first wrong value
  Nanoseconds error_time = 0;
  bool closed = false;
  Phase where = Phase::joined;
};

struct Run {
  SimWorld& world;
  const Plan& plan;
  std::vector<Story> stories;
  Nanoseconds longest = 0;
  Nanoseconds kill_time = 0;       // 0: nobody was killed
  Phase kill_phase = Phase::none;  // where the victim really was

  sim::Scheduler& scheduler() { return world.scheduler(); }
  void schedule_kill() {
    scheduler().after(plan.kill_delay, [this] {
      if (world.has_ended(plan.victim)) return;
      kill_time = scheduler().now();
      kill_phase = stories[static_cast<std::size_t>(plan.victim)].where;
      world.kill(plan.victim);
    });
  }
  bool my_kill(const Communicator& comm, Phase phase, std::size_t operation) const {
    return plan.phase == phase && plan.victim == comm.rank() && plan.operation == operation;
  }
  void timed(Nanoseconds began) { longest = std::max(longest, scheduler().now() - began); }

  void rank(Communicator& comm) {
    Story& story = stories[static_cast<std::size_t>(comm.rank())];
    try {
      live(comm, story);
    } catch (const Error& error) {
      story.error = error;
      story.error_time = scheduler().now();
    }
  }

  void live(Communicator& comm, Story& story) {
    if (my_kill(comm, Phase::joined, plan.operation)) schedule_kill();
    scheduler().sleep(scheduler().random().between(0, 50 * microsecond));
    const Collective c = plan.algorithm->collective;
    const Stream stream;
    for (std::size_t k = 0; k < plan.counts.size(); ++k) {
      const std::size_t in_count = plan.counts[k] * input_blocks(c, plan.ranks);
      const std::size_t out_count = plan.counts[k] * output_blocks(c, plan.ranks);
      std::vector<std::uint32_t> plain_in(in_count + 1), plain_out(out_count + 1, 0xDEADBEEF);
      std::optional<Window<std::uint32_t>> window_in, window_out;
      std::uint32_t* in = plain_in.data();
      std::uint32_t* out = plain_out.data();
      if (plan.windows) {
        in = window_in.emplace(comm.allocate<std::uint32_t>(in_count + 1)).span().data();
        out = window_out.emplace(comm.allocate<std::uint32_t>(out_count + 1)).span().data();
      }
      for (std::size_t i = 0; i < in_count; ++i) in[i] = value_of(k, comm.rank(), i);
      for (std::size_t i = 0; i <= out_count; ++i) out[i] = 0xDEADBEEF;
      if (my_kill(comm, Phase::running, k)) schedule_kill();
      CallOptions how;
      if (plan.streams) how.stream = &stream;
      const Nanoseconds began = scheduler().now();
      story.where = Phase::running;
      issue(comm, plan, k, in, out, how).wait();
      timed(began);
      story.where = Phase::between;
      check(comm.rank(), k, out, out_count, story);
      if (my_kill(comm, Phase::between, k)) schedule_kill();
      scheduler().sleep(scheduler().random().between(0, 100 * microsecond));
    }
    if (my_kill(comm, Phase::closing, plan.operation)) schedule_kill();
    const Nanoseconds began = scheduler().now();
    story.where = Phase::closing;
    comm.close();
    timed(began);
    story.closed = true;
  }

  void check(int rank, std::size_t operation, const std::uint32_t* out, std::size_t count, Story& story) const {
    for (std::size_t i = 0; i < count && story.wrong.empty(); ++i) {
      const auto right = expected(plan, operation, rank, i);
      if (right && out[i] != *right)
        story.wrong = fmt::format("rank {}: operation {} element {} of {} is {:#x}, should be {:#x}", rank, operation,
                                  i, count, out[i], *right);
    }
    if (story.wrong.empty() && out[count] != 0xDEADBEEF)
      story.wrong = fmt::format("rank {}: operation {} wrote behind its output", rank, operation);
  }
};

std::string judge(const Run& run, const Plan& plan, SeedResult& result) {
  const bool killed = run.kill_time != 0;
  int failed = 0;
  for (int r = 0; r < plan.ranks; ++r) {
    const Story& story = run.stories[static_cast<std::size_t>(r)];
    if (killed && r == plan.victim) continue;
    if (!story.wrong.empty()) return story.wrong;
    if (!story.error) {
      if (!story.closed) return fmt::format("rank {} neither closed nor failed", r);
      continue;
    }
    ++failed;
    ++result.errors[std::string(name_of(story.error->code()))];
    const std::string text = story.error->what();
    if (!killed) return fmt::format("rank {} failed though nobody was killed: {}", r, text);
    if (story.error->peer() != plan.victim && text.find(fmt::format("rank {}", plan.victim)) == std::string::npos)
      return fmt::format("rank {}: the error does not name rank {}, which was killed: {}: {}", r, plan.victim,
                         name_of(story.error->code()), text);
    if (story.error_time - run.kill_time > detection_limit)
      return fmt::format("rank {} learned of the kill after {} ms: {}", r,
                         (story.error_time - run.kill_time) / millisecond, text);
  }
  result.all_right = failed == 0;
  // Only a rank that had begun to close may have said its goodbye before it died.
  if (killed && run.kill_phase != Phase::closing && failed != plan.ranks - 1)
    return fmt::format("{} of {} survivors failed", failed, plan.ranks - 1);
  if (!killed && run.longest >= nap)
    return fmt::format("an operation took {} us without a fault: a wake-up was lost", run.longest / microsecond);
  return {};
}

}  // namespace

SeedResult run_seed(std::uint64_t seed, const SeedOptions& options) {
  // Survivors warn while they close: thousands of lines that say what is expected.
  if (std::getenv("RONDO_DEBUG") == nullptr) base::set_log_options({});
  sim::Random random(seed * 0x9E3779B97F4A7C15ULL + 17);
  const Plan plan = make_plan(random, options);
  WorldOptions world_options;
  world_options.scheduler.seed = random.next();
  world_options.scheduler.stacks = options.stacks;
  world_options.network.hosts = spread_over(plan.ranks, plan.hosts);
  constexpr std::uint32_t slot_sizes[] = {1024, 4096, 8192};
  // The fewest slots that plans promise to live with, or more: slots_min for each of the two slices of a tile. A lost
  // credit shows with so few slots that they are just enough for one slice a step.
  const std::uint32_t promised = plan.algorithm->name == "ring" ? 2 : 1;
  const std::uint32_t slot_counts[] = {2 * promised, 4, 8};
  const std::uint32_t slots = slot_counts[random.below(std::size(slot_counts))];
  world_options.network.layout = {options.lose_credit != 0 ? promised : slots,
                                  slot_sizes[random.below(std::size(slot_sizes))]};
  world_options.network.most_delay = random.one_in(2) ? 2 * microsecond : 20 * microsecond;
  world_options.network.lose_credit = options.lose_credit;
  world_options.network.ring_when_armed = random.one_in(2);
  world_options.pins.push_back(
      {plan.algorithm->collective, 0, std::numeric_limits<std::uint64_t>::max(), plan.algorithm});
  if (options.lose_wake != 0) {
    const auto left = std::make_shared<std::uint64_t>(options.lose_wake);
    world_options.make_system = [left](sim::Scheduler& scheduler, int rank) {
      return std::make_unique<LossySystem>(scheduler, rank, left);
    };
  }

  SeedResult result;
  result.seed = seed;
  result.algorithm = fmt::format("{}/{}", name_of(plan.algorithm->collective), plan.algorithm->name);
  result.ranks = plan.ranks;
  result.hosts = plan.hosts;
  result.scenario = fmt::format(
      "seed {}: {} of {} on {} ranks and {} hosts, root {}, {} operation(s) of {}.. elements, {}{}, {} slots of {} "
      "bytes, {}",
      seed, name_of(plan.op), result.algorithm, plan.ranks, plan.hosts, plan.root, plan.counts.size(), plan.counts[0],
      plan.windows ? "windows" : "plain", plan.streams ? ", on a stream" : "", world_options.network.layout.slots,
      world_options.network.layout.slot_bytes,
      plan.phase == Phase::none ? std::string("no kill")
                                : fmt::format("rank {} killed {} ({} ns after)", plan.victim,
                                              phase_names[static_cast<std::size_t>(plan.phase)], plan.kill_delay));
  SimWorld world(world_options);
  Run run{world, plan, std::vector<Story>(static_cast<std::size_t>(plan.ranks))};
  try {
    world.run([&](Communicator& comm) { run.rank(comm); });
    if (run.kill_time != 0) {
      result.phase = run.kill_phase;
      result.victim = plan.victim;
    }
    result.failure = judge(run, plan, result);
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  result.longest_operation = run.longest;
  result.trace_hash = world.scheduler().trace_hash();
  result.turns = world.scheduler().turns();
  return result;
}

}  // namespace rondo::testing
