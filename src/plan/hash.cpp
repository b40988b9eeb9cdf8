#include "plan/hash.hpp"

#include <string_view>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rondo::plan {
namespace {

// Every field as a 32-bit word, each list preceded by its length, so that no two plans write the same.
class Words {
 public:
  void add(std::int32_t value) { words_.push_back(value); }
  void add_size(std::size_t size) { add(static_cast<std::int32_t>(size)); }
  void add(std::string_view text) {
    add_size(text.size());
    for (const char c : text) add(static_cast<std::int32_t>(c));
  }
  void add(const ChunkRef& ref) {
    add(static_cast<std::int32_t>(ref.buffer));
    add(ref.base);
    add(ref.stride);
  }
  std::uint64_t hash() const { return XXH3_64bits(words_.data(), words_.size() * sizeof(std::int32_t)); }

 private:
  std::vector<std::int32_t> words_;
};

void add(Words& words, const Step& step) {
  words.add_size(step.operands.size());
  for (const Operand& operand : step.operands) {
    words.add(static_cast<std::int32_t>(operand.kind));
    words.add(operand.chunk);
    words.add(operand.connection);
  }
  words.add(step.destination.has_value() ? 1 : 0);
  if (step.destination) words.add(*step.destination);
  words.add_size(step.sends.size());
  for (const Send& send : step.sends) {
    words.add(send.connection);
    words.add(send.flush ? 1 : 0);
  }
  words.add(step.extent);
  words.add_size(step.after.size());
  for (const After& after : step.after) {
    words.add(after.lane);
    words.add(after.step);
    words.add(after.lag);
  }
  words.add_size(step.drain.size());
  for (const std::int32_t connection : step.drain) words.add(connection);
  words.add(step.finish ? 1 : 0);
}

}  // namespace

std::uint64_t hash_of(const RankPlan& plan) {
  Words words;
  words.add(std::string_view(plan.name));
  words.add(static_cast<std::int32_t>(plan.collective));
  for (const std::int32_t value : {plan.size, plan.rank, plan.root, plan.chunks[0], plan.chunks[1], plan.chunks[2],
                                   plan.scratch_tiles, plan.rank_ordered ? 1 : 0})
    words.add(value);
  words.add_size(plan.connections.size());
  for (const Connection& connection : plan.connections)
    for (const std::int32_t value : {static_cast<std::int32_t>(connection.direction), connection.peer, connection.tag,
                                     connection.lane, connection.slots_min, connection.direct ? 1 : 0})
      words.add(value);
  words.add_size(plan.lanes.size());
  for (const Lane& lane : plan.lanes) {
    words.add_size(lane.blocks.size());
    for (const Block& block : lane.blocks) {
      words.add(block.count);
      words.add_size(block.steps.size());
      for (const Step& step : block.steps) add(words, step);
    }
  }
  return words.hash();
}

}  // namespace rondo::plan
