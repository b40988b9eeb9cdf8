// What the algorithm files offer to the registry: generators, and their closed-form costs in seconds.
//
// Costs follow one model: a message takes alpha + bytes * beta, a rank's outgoing bytes share its port, a reduced byte
// takes gamma, and each further message that a rank handles within one round adds `message_share` of an alpha.
// `bytes` is the larger side of the call, as nccl-tests prints it: the whole buffer; for all_gather, reduce_scatter,
// all_to_all, gather and scatter that of all ranks together.
#pragma once

#include "plan/cost.hpp"
#include "plan/plan.hpp"

#include <cstdint>

namespace rondo::algorithms {

inline constexpr double message_share = 0.125;

using Generator = plan::RankPlan(const plan::Shape& shape, std::int32_t rank);
using Cost = double(const plan::Shape& shape, double bytes, const plan::LinkCost& link);

// ring.cpp
Generator ring_all_reduce, ring_all_gather, ring_reduce_scatter, ring_broadcast, ring_reduce;
Cost ring_all_reduce_cost, ring_all_gather_cost, ring_reduce_scatter_cost, ring_broadcast_cost, ring_reduce_cost;
// one_shot.cpp
Generator one_shot_all_reduce, one_shot_barrier;
Cost one_shot_all_reduce_cost, one_shot_barrier_cost;
// two_shot.cpp
Generator two_shot_all_reduce;
Cost two_shot_all_reduce_cost;
// direct.cpp, direct_all_to_all.cpp
Generator direct_all_gather, direct_reduce_scatter, direct_broadcast, direct_reduce, direct_gather, direct_scatter;
Generator direct_all_to_all;
Cost direct_all_gather_cost, direct_reduce_scatter_cost, direct_broadcast_cost, direct_reduce_cost;
Cost direct_gather_cost, direct_scatter_cost, direct_all_to_all_cost;
// chain.cpp
Generator chain_broadcast, chain_reduce;
Cost chain_broadcast_cost, chain_reduce_cost;
// binomial_tree.cpp
Generator binomial_tree_broadcast, binomial_tree_reduce;
Cost binomial_tree_broadcast_cost, binomial_tree_reduce_cost;
// double_binary_tree.cpp
Generator double_binary_tree_all_reduce;
Cost double_binary_tree_all_reduce_cost;
// halving_doubling.cpp
Generator halving_doubling_all_reduce;
Cost halving_doubling_all_reduce_cost;
// bruck.cpp
Generator bruck_all_gather;
Cost bruck_all_gather_cost;
// recursive_doubling.cpp
Generator recursive_doubling_all_reduce, recursive_doubling_barrier;
Cost recursive_doubling_all_reduce_cost, recursive_doubling_barrier_cost;

// The plan of one rank alone: input goes to output, finished. For every collective.
plan::RankPlan single_rank(const char* name, const plan::Shape& shape, bool rank_ordered);

}  // namespace rondo::algorithms
