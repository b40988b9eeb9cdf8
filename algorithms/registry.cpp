#include "algorithms/registry.hpp"

#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

namespace rondo::algorithms {

plan::RankPlan single_rank(const char* name, const plan::Shape& shape, bool rank_ordered) {
  plan::Builder plan(name, shape, 0, {.input = 1, .output = 1}, rank_ordered);
  const bool reduces = shape.collective == Collective::all_reduce || shape.collective == Collective::reduce_scatter ||
                       shape.collective == Collective::reduce || shape.collective == Collective::barrier;
  plan::LaneBuilder lane = plan.lane();
  auto step = lane.step();
  step.local(plan::input, 0).store(plan::output, 0);
  if (reduces) step.finish();
  return plan.build();
}

namespace {

// Every built-in algorithm exists for every number of ranks.
bool every(const plan::Shape&) { return true; }

// Collectives that don't reduce are rank-ordered whatever the algorithm: their results are copies.
constexpr Algorithm table[] = {
    {"one_shot", Collective::all_reduce, one_shot_all_reduce, every, one_shot_all_reduce_cost, true},
    {"two_shot", Collective::all_reduce, two_shot_all_reduce, every, two_shot_all_reduce_cost, true},
    {"recursive_doubling", Collective::all_reduce, recursive_doubling_all_reduce, every,
     recursive_doubling_all_reduce_cost, false},
    {"halving_doubling", Collective::all_reduce, halving_doubling_all_reduce, every, halving_doubling_all_reduce_cost,
     false},
    {"double_binary_tree", Collective::all_reduce, double_binary_tree_all_reduce, every,
     double_binary_tree_all_reduce_cost, false},
    {"ring", Collective::all_reduce, ring_all_reduce, every, ring_all_reduce_cost, false},

    {"direct", Collective::all_gather, direct_all_gather, every, direct_all_gather_cost, true},
    {"bruck", Collective::all_gather, bruck_all_gather, every, bruck_all_gather_cost, true},
    {"ring", Collective::all_gather, ring_all_gather, every, ring_all_gather_cost, true},

    {"direct", Collective::reduce_scatter, direct_reduce_scatter, every, direct_reduce_scatter_cost, true},
    {"ring", Collective::reduce_scatter, ring_reduce_scatter, every, ring_reduce_scatter_cost, false},

    {"direct", Collective::broadcast, direct_broadcast, every, direct_broadcast_cost, true},
    {"chain", Collective::broadcast, chain_broadcast, every, chain_broadcast_cost, true},
    {"binomial_tree", Collective::broadcast, binomial_tree_broadcast, every, binomial_tree_broadcast_cost, true},
    {"ring", Collective::broadcast, ring_broadcast, every, ring_broadcast_cost, true},

    {"direct", Collective::reduce, direct_reduce, every, direct_reduce_cost, true},
    {"chain", Collective::reduce, chain_reduce, every, chain_reduce_cost, false},
    {"binomial_tree", Collective::reduce, binomial_tree_reduce, every, binomial_tree_reduce_cost, false},
    {"ring", Collective::reduce, ring_reduce, every, ring_reduce_cost, false},

    {"direct", Collective::all_to_all, direct_all_to_all, every, direct_all_to_all_cost, true},
    {"direct", Collective::gather, direct_gather, every, direct_gather_cost, true},
    {"direct", Collective::scatter, direct_scatter, every, direct_scatter_cost, true},

    {"one_shot", Collective::barrier, one_shot_barrier, every, one_shot_barrier_cost, true},
    {"recursive_doubling", Collective::barrier, recursive_doubling_barrier, every, recursive_doubling_barrier_cost,
     true},
};

}  // namespace

std::span<const Algorithm> all() { return table; }

const Algorithm* find(Collective collective, std::string_view name) {
  for (const Algorithm& algorithm : table)
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  return nullptr;
}

}  // namespace rondo::algorithms
