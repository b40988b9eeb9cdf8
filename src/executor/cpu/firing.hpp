// Firing: one execution of a step on one slice, with everything resolved that does not depend on the user's buffers.
// Script: the firings of a short call, resolved once for all calls of its kind.
//
// Plain values; spans and pointers are into a bound plan and into whoever resolved the firing.
#pragma once

#include "executor/cpu/bound_plan.hpp"
#include "executor/cpu/call.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rondo::executor {

struct Firing {
  struct Source {
    BoundConnection* connection = nullptr;  // whose next message it is; null: a place in this rank's memory
    plan::Buffer buffer = plan::Buffer::input;
    bool scaled = false;     // multiplied by the call's factor
    std::size_t offset = 0;  // bytes from the buffer's beginning
  };
  struct Send {
    BoundConnection* connection = nullptr;
    bool flush = true;
  };
  const plan::Step* step = nullptr;
  std::span<Source> sources;  // in the order of reduction
  std::span<Send> sends;
  std::size_t count = 0;  // elements
  std::size_t bytes = 0;
  std::size_t destination_offset = 0;
  plan::Buffer destination = plan::Buffer::output;
  bool stores = false;  // has a destination
  bool scales = false;  // some source is scaled
  bool computes = false;
  bool stream = false;  // the destination is written with non-temporal stores
  bool waits = false;   // the step has `after` or `drain`
  bool last = true;     // slice of its step and tile
  std::uint32_t divisor = 1;
};

// Where a lane is, and which share of every chunk is its channel's.
struct Place {
  std::size_t channel = 0;
  std::size_t channels = 1;
  std::uint32_t tile = 0;
  std::int32_t j = 0;
  std::uint32_t slice = 0;
};

// Fills `firing`, whose spans have room for the step's operands and sends. False when the step's chunk has no such
// tile.
bool resolve(const Call& call, BoundPlan& bound, const plan::Step& step, const Place& place, Firing& firing);

// Elements of a channel's share of the longest chunk, rounded up: at least what any chunk gives it.
std::size_t longest_share(const Call& call, const plan::RankPlan& plan, std::size_t channels);

// All firings of a call in which every step is one slice of one tile, lane after lane; channels' lanes follow each
// other. Empty for other calls, and for those with more firings than are worth keeping.
class Script {
 public:
  Script() = default;
  Script(std::span<BoundPlan* const> channels, const Call& call);
  Script(Script&&) = default;
  Script& operator=(Script&&) = default;
  Script(const Script&) = delete;  // the firings' spans
  Script& operator=(const Script&) = delete;
  ~Script() = default;

  bool empty() const { return lanes_.empty(); }
  std::span<const Firing> lane(std::size_t index) const { return lanes_[index]; }

 private:
  std::vector<Firing> firings_;
  std::vector<Firing::Source> sources_;
  std::vector<Firing::Send> sends_;
  std::vector<std::span<const Firing>> lanes_;
};

}  // namespace rondo::executor
