// Double binary tree: two trees over all ranks, each for half of the buffer, reduce to their roots and send the results
// back down. A rank that has children in one tree has none in the other, so every rank's port carries about twice the
// buffer in 2 log2 n messages, however many ranks there are: between the trees of log n depth and the ring.
//
// The first tree numbers its nodes in order: below rank 0 hangs the largest power of two, and a rank whose lowest
// one-bit is b has children at the distances b / 2 to its left and right (where the right one would be n or more, the
// next smaller distance that exists). Even ranks but 0 are inner nodes, odd ones leaves. The second tree is the first
// with ranks counted backwards (n even) or from the next rank (n odd), which changes odd and even. A lane each up and
// down, so that a tile goes up while the one before comes down. References are safe also in place: a chunk of input is
// overwritten by the result only, whose sender has all contributions. Source: Sanders, Speck, Traff, "Two-tree
// algorithms for full bandwidth broadcast, reduction and scan" (2009).
#include "algorithms/generators.hpp"
#include "plan/builder.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace rondo::algorithms {

using plan::Builder;
using plan::input;
using plan::LaneBuilder;
using plan::output;

namespace {

constexpr double pipeline_tile = 65536;

struct Place {
  std::int32_t parent = -1;  // -1: the root
  std::vector<std::int32_t> children;
};

Place in_first_tree(std::int32_t n, std::int32_t v) {
  Place place;
  if (v == 0) {
    if (n > 1) place.children.push_back(static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(n - 1))));
    return place;
  }
  const std::int64_t b = v & -v;
  const std::int64_t above = (v - b) | (2 * b);
  place.parent = static_cast<std::int32_t>(above < n ? above : v - b);
  if (b == 1) return place;
  place.children.push_back(static_cast<std::int32_t>(v - b / 2));
  std::int64_t d = b / 2;
  while (d > 0 && v + d >= n) d /= 2;
  if (d > 0) place.children.push_back(static_cast<std::int32_t>(v + d));
  return place;
}

Place place_of(std::int32_t n, std::int32_t rank, int tree) {
  // Its own inverse for even n; for odd n one step on and one back.
  const auto there = [&](std::int32_t r) { return tree == 0 ? r : n % 2 == 0 ? n - 1 - r : (r + n - 1) % n; };
  const auto back = [&](std::int32_t v) { return tree == 0 ? v : n % 2 == 0 ? n - 1 - v : (v + 1) % n; };
  Place place = in_first_tree(n, there(rank));
  if (place.parent >= 0) place.parent = back(place.parent);
  for (std::int32_t& child : place.children) child = back(child);
  return place;
}

}  // namespace

plan::RankPlan double_binary_tree_all_reduce(const plan::Shape& shape, std::int32_t rank) {
  const std::int32_t n = shape.size;
  if (n == 1) return single_rank("double_binary_tree", shape, false);
  Builder plan("double_binary_tree", shape, rank, {.input = 2, .output = 2});
  for (int tree = 0; tree < 2; ++tree) {
    const plan::ConnectionOptions up{.tag = 2 * tree, .slots_min = 1, .direct = true};
    const plan::ConnectionOptions down{.tag = 2 * tree + 1, .slots_min = 1, .direct = true};
    const Place place = place_of(n, rank, tree);
    LaneBuilder rising = plan.lane();
    auto reduce = rising.step();
    reduce.local(input, tree);
    for (const std::int32_t child : place.children) reduce.receive(rising.from(child, up));
    if (place.parent < 0) {
      reduce.store(output, tree).finish();
      for (const std::int32_t child : place.children) reduce.send(rising.to(child, down));
      continue;
    }
    reduce.send(rising.to(place.parent, up));
    LaneBuilder falling = plan.lane();
    auto hand_on = falling.step();
    hand_on.receive(falling.from(place.parent, down)).store(output, tree);
    for (const std::int32_t child : place.children) hand_on.send(falling.to(child, down));
  }
  return plan.build();
}

// The first tile goes up and down, the others behind it through a port that sends half up twice (to both parents) and
// half down to two children.
double double_binary_tree_all_reduce_cost(const plan::Shape& shape, double bytes, const plan::LinkCost& link) {
  if (shape.size == 1) return 0;
  const double depth = std::bit_width(static_cast<std::uint32_t>(shape.size - 1));
  const double tile = std::min(bytes, pipeline_tile);
  return depth * (2 * link.alpha + tile / 2 * (2 * link.beta + link.gamma)) +
         (bytes - tile) * (2 * link.beta + link.gamma);
}

}  // namespace rondo::algorithms
