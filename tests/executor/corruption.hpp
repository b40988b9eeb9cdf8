// Corruptions of one step of the plan that a communicator really runs, by the executor's hook.
#pragma once

#include "executor/cpu/plan_interceptor.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace rondo {

// What is done to the step; a step that it does not apply to is left.
enum class Corruption : std::uint8_t {
  forgets_to_store,    // no destination
  forgets_to_send,     // no sends
  drops_an_operand,    // one local contribution is missing
  takes_another_chunk  // reads the wrong part of the input
};
inline constexpr const char* corruption_names[] = {"forgets_to_store", "forgets_to_send", "drops_an_operand",
                                                   "takes_another_chunk"};

inline bool corrupt(plan::RankPlan& plan, plan::Step& step, Corruption how) {
  switch (how) {
    case Corruption::forgets_to_store:
      if (!step.destination) return false;
      step.destination.reset();
      return true;
    case Corruption::forgets_to_send:
      if (step.sends.empty()) return false;
      step.sends.clear();
      return true;
    case Corruption::drops_an_operand: {
      const auto it = std::find_if(step.operands.begin(), step.operands.end(),
                                   [](const plan::Operand& o) { return o.kind == plan::Operand::Kind::local; });
      if (step.operands.size() < 2 || it == step.operands.end()) return false;
      step.operands.erase(it);
      return true;
    }
    case Corruption::takes_another_chunk:
      for (plan::Operand& o : step.operands) {
        const std::int32_t chunks = plan.chunks[static_cast<int>(o.chunk.buffer)];
        if (o.kind != plan::Operand::Kind::local || o.chunk.buffer != plan::Buffer::input || chunks < 2) continue;
        o.chunk.base = (o.chunk.base + 1) % chunks;
        return true;
      }
      return false;
  }
  return false;
}

// Puts a corruption into the `wanted`-th step that it applies to, of one rank's plans of a collective, while it lives.
class Interception {
 public:
  Interception(Collective collective, int rank, Corruption how, int wanted) {
    executor::plan_interceptor() = [this, collective, rank, how, wanted](plan::RankPlan& plan) {
      if (plan.collective != collective || plan.rank != rank) return;
      int seen = 0;
      for (plan::Lane& lane : plan.lanes)
        for (plan::Block& block : lane.blocks)
          for (plan::Step& step : block.steps) {
            plan::Step changed = step;
            if (!corrupt(plan, changed, how) || seen++ != wanted) continue;
            step = changed;
            applied_.store(true);
          }
    };
  }
  Interception(const Interception&) = delete;
  Interception& operator=(const Interception&) = delete;
  ~Interception() { executor::plan_interceptor() = nullptr; }
  bool applied() const { return applied_.load(); }

 private:
  std::atomic<bool> applied_{false};
};

}  // namespace rondo
