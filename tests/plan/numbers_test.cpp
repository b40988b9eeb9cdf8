// Every built-in algorithm on numbers: an interpreter of its own, independent of the checker, runs the plans on uneven
// chunks (some empty), several tiles, in and out of place, under a seeded random schedule, and the results are compared
// with the definition of the collective.
#include "algorithms/registry.hpp"
#include "plan/checker.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <tuple>

namespace rondo::plan {
namespace {

using Number = std::uint64_t;
constexpr std::int64_t tile_elements = 3;

// Element i of input chunk c of rank r.
Number element(std::int32_t r, std::int32_t c, std::int64_t i) {
  return static_cast<Number>(r) * 1'000'003 + static_cast<Number>(c) * 10'007 + static_cast<Number>(i) * 31 + 7;
}

class Machine {
 public:
  Machine(std::vector<RankPlan> plans, bool in_place) : plans_(std::move(plans)), in_place_(in_place) {
    for (const RankPlan& plan : plans_) {
      const auto r = static_cast<std::size_t>(plan.rank);
      memory_.emplace_back();
      for (const Buffer buffer : {Buffer::input, Buffer::output})
        for (std::int32_t c = 0; c < plan.chunks[static_cast<int>(buffer)]; ++c)
          memory_[r].emplace(std::pair{buffer, c}, std::vector<Number>(size(plan, buffer, c), 0xDEAD));
      for (std::int32_t c = 0; c < plan.chunks[0]; ++c)
        for (std::size_t i = 0; i < chunk(plan, {Buffer::input, c, 0}).size(); ++i)
          chunk(plan, {Buffer::input, c, 0})[i] = element(plan.rank, c, static_cast<std::int64_t>(i));
      for (std::size_t l = 0; l < plan.lanes.size(); ++l) lanes_.push_back(program(plan, l));
    }
  }

  // The memory of a chunk: in place, output is where the collective says.
  std::vector<Number>& chunk(const RankPlan& plan, ChunkRef ref) {
    if (in_place_ && ref.buffer == Buffer::output) {
      const Collective k = plan.collective;
      const bool root = plan.rank == plan.root;
      const bool same = k == Collective::all_reduce || k == Collective::all_to_all ||
                        ((k == Collective::reduce || k == Collective::broadcast) && root);
      const bool gathers = (k == Collective::all_gather || (k == Collective::gather && root)) && ref.base == plan.rank;
      const bool scatters = k == Collective::reduce_scatter || (k == Collective::scatter && root);
      if (same) ref = {Buffer::input, ref.base, 0};
      if (gathers) ref = {Buffer::input, 0, 0};
      if (scatters) ref = {Buffer::input, plan.rank, 0};
    }
    return memory_[static_cast<std::size_t>(plan.rank)].at({ref.buffer, ref.base});
  }

  // Lengths 0 .. 10, so 1 to 4 tiles; in place all-to-all has equal ones.
  std::size_t size(const RankPlan& plan, Buffer buffer, std::int32_t c) const {
    const bool in = buffer == Buffer::input;
    std::int32_t key = c;
    switch (plan.collective) {
      case Collective::barrier: return 0;
      case Collective::all_gather:
      case Collective::gather: key = in ? plan.rank : c; break;
      case Collective::reduce_scatter:
      case Collective::scatter: key = in ? c : plan.rank; break;
      case Collective::all_to_all:
        if (in_place_) return 7;
        key = in ? plan.rank * plan.size + c : c * plan.size + plan.rank;
        break;
      default: break;
    }
    return static_cast<std::size_t>((key * 7 + 5) % 11);
  }

  // False if it got stuck.
  bool run(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::size_t> open;
    for (std::size_t l = 0; l < lanes_.size(); ++l) open.push_back(l);
    while (!open.empty()) {
      std::shuffle(open.begin(), open.end(), random);
      bool moved = false;
      for (const std::size_t l : open) {
        const std::size_t burst = random() % 4;
        for (std::size_t i = 0; i <= burst && !lanes_[l].instances.empty() && try_step(lanes_[l]); ++i) moved = true;
      }
      std::erase_if(open, [&](std::size_t l) { return lanes_[l].instances.empty(); });
      if (!moved && !open.empty()) return false;
    }
    return std::all_of(wires_.begin(), wires_.end(), [](const auto& wire) { return wire.second.empty(); });
  }

  const std::vector<RankPlan>& plans() const { return plans_; }

 private:
  struct Instance {
    const Step* step;
    std::int32_t turn;
    std::int64_t tile;
  };
  struct Program {
    const RankPlan* plan;
    std::deque<Instance> instances;
  };

  static std::int64_t tiles_of(std::size_t length) {
    return std::max<std::int64_t>(1, (static_cast<std::int64_t>(length) + tile_elements - 1) / tile_elements);
  }

  Program program(const RankPlan& plan, std::size_t lane) const {
    Program result{&plan, {}};
    for (std::int64_t t = 0; t < 4; ++t)
      for (const Block& block : plan.lanes[lane].blocks)
        for (std::int32_t j = 0; j < block.count; ++j)
          for (const Step& step : block.steps)
            if (t < tiles_of(size(plan, step.extent.buffer, plan.chunk_at(step.extent, j))))
              result.instances.push_back({&step, j, t});
    return result;
  }

  std::deque<std::vector<Number>>& wire(const RankPlan& plan, std::int32_t c) {
    const Connection& end = plan.connections[static_cast<std::size_t>(c)];
    const bool out = end.direction == Direction::outgoing;
    return wires_[{out ? plan.rank : end.peer, out ? end.peer : plan.rank, end.tag}];
  }

  bool try_step(Program& lane) {
    const RankPlan& plan = *lane.plan;
    const Instance now = lane.instances.front();
    for (const Operand& operand : now.step->operands)
      if (operand.kind == Operand::Kind::receive && wire(plan, operand.connection).empty()) return false;
    for (const Send& send : now.step->sends)
      if (wire(plan, send.connection).size() >=
          static_cast<std::size_t>(plan.connections[static_cast<std::size_t>(send.connection)].slots_min))
        return false;
    const auto at = [&](const ChunkRef& ref) { return ChunkRef{ref.buffer, plan.chunk_at(ref, now.turn), 0}; };
    const auto length = static_cast<std::int64_t>(size(plan, now.step->extent.buffer, at(now.step->extent).base));
    const std::int64_t begin = std::min(length, now.tile * tile_elements);
    const std::int64_t end = std::min(length, begin + tile_elements);
    std::vector<Number> result(static_cast<std::size_t>(end - begin), 0);
    for (const Operand& operand : now.step->operands) {
      std::vector<Number> values;
      if (operand.kind == Operand::Kind::local) {
        const auto& from = chunk(plan, at(operand.chunk));
        values.assign(from.begin() + begin, from.begin() + end);
      } else {
        values = wire(plan, operand.connection).front();
        wire(plan, operand.connection).pop_front();
      }
      EXPECT_EQ(values.size(), result.size());
      if (values.size() != result.size()) return false;
      for (std::size_t i = 0; i < values.size(); ++i) result[i] += values[i];
    }
    // Stands for what avg does at the end, and shows when it is done twice or not at all.
    if (now.step->finish)
      for (Number& value : result) value *= 3;
    if (now.step->destination)
      std::copy(result.begin(), result.end(), chunk(plan, at(*now.step->destination)).begin() + begin);
    for (const Send& send : now.step->sends) wire(plan, send.connection).push_back(result);
    lane.instances.pop_front();
    return true;
  }

  std::vector<RankPlan> plans_;
  bool in_place_;
  std::vector<std::map<std::pair<Buffer, std::int32_t>, std::vector<Number>>> memory_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::deque<std::vector<Number>>> wires_;
  std::vector<Program> lanes_;
};

// Element i of output chunk c of rank r, by the definition of the collective.
Number defined(const RankPlan& plan, std::int32_t c, std::int64_t i) {
  switch (plan.collective) {
    case Collective::all_gather:
    case Collective::gather: return element(c, 0, i);
    case Collective::broadcast: return element(plan.root, c, i);
    case Collective::scatter: return element(plan.root, plan.rank, i);
    case Collective::all_to_all: return element(c, plan.rank, i);
    default: break;
  }
  Number sum = 0;
  for (std::int32_t r = 0; r < plan.size; ++r)
    sum += element(r, plan.collective == Collective::reduce_scatter ? plan.rank : c, i);
  return 3 * sum;
}

TEST(Numbers, EveryAlgorithmComputesItsCollectiveOnUnevenChunks) {
  for (const algorithms::Algorithm& a : algorithms::all())
    for (const std::int32_t n : {1, 2, 3, 4, 5, 7, 8, 12})
      for (const bool in_place : {false, true})
        for (const std::uint32_t seed : {1U, 2U, 3U}) {
          const Shape shape{a.collective, n, static_cast<std::int32_t>(seed) % n};
          Machine machine(generate_all(a.generate, shape), in_place);
          ASSERT_TRUE(machine.run(seed)) << a.name << " " << name_of(a.collective) << " among " << n;
          for (const RankPlan& plan : machine.plans())
            for (std::int32_t c = 0; c < plan.chunks[1]; ++c) {
              const auto& got = machine.chunk(plan, {Buffer::output, c, 0});
              for (std::size_t i = 0; i < got.size(); ++i)
                ASSERT_EQ(got[i], defined(plan, c, static_cast<std::int64_t>(i)))
                    << a.name << " " << name_of(a.collective) << " among " << n << " rank " << plan.rank << " chunk "
                    << c << " in place " << in_place;
            }
        }
}

}  // namespace
}  // namespace rondo::plan
