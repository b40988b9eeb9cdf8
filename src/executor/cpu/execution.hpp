// Execution: steps the lanes of a bound plan. The CPU's interpreter of plans, and the only mover of collective bytes.
//
// prepare() sets it up for calls of one kind, start() begins one call; advance() runs every lane as far as messages and
// credits allow and says whether anything moved; done() is true once all lanes have ended and every reference handed
// out has been read. Never blocks. A step's conditions are tested without side effects and then committed whole, so
// advance() may be called by one owner now and by another later. One owner at a time.
#pragma once

#include "executor/cpu/bound_plan.hpp"
#include "executor/cpu/call.hpp"
#include "executor/cpu/firing.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rondo::executor {

// Thrown by advance() when a message belongs to another operation than the one running: the ranks disagree. Who is
// right is for the board to say.
struct ForeignMessage {
  int peer = -1;  // rank in the plan
  std::uint32_t expected = 0;
  std::uint32_t found = 0;
  std::size_t expected_bytes = 0;
  std::size_t found_bytes = 0;
};

class Execution {
 public:
  // `channels` run side by side, each on its share of every chunk. `script` is theirs for this call, or empty. All
  // three and the call's tables must outlive the execution.
  void prepare(std::span<BoundPlan* const> channels, ConnectionSource& source, const Call& call, const Script& script);
  // Begins a call on these buffers. The one before must have ended, in good order or not.
  void start(const std::byte* input, std::byte* output, double factor, std::uint32_t signature);
  bool advance();
  bool done() const { return lanes_left_ == 0; }
  // Lets wires move: connections' pumps. Called while waiting.
  void pump();
  // Asks for the bell to be rung when a wire has news; called before sleeping.
  void arm();
  // "lane 1 of 3: step 4 (tile 0), waiting for rank 2": for deadlines and the flight recorder. Approximate when called
  // from another thread than the owner's.
  std::string progress() const;

 private:
  struct LaneState {
    BoundPlan* bound = nullptr;
    const plan::Lane* lane = nullptr;
    bool scripted = false;  // else firings are resolved one by one, into `current`
    std::span<const Firing> script;
    Firing current;
    std::byte* buffers[plan::buffer_count] = {};
    std::int32_t channel = 0;
    std::int32_t index = 0;  // of the lane in its plan
    std::uint32_t tile = 0;
    std::uint32_t tiles = 1;
    std::uint32_t block = 0;
    std::int32_t j = 0;
    std::uint32_t step = 0;
    std::uint32_t slice = 0;
    std::int32_t unrolled = 0;  // steps completed in this tile
    bool resolved = false;      // `current` is what comes next
    bool steps_ended = false;
    bool ended = false;
  };

  bool advance_lane(LaneState& lane);
  bool advance_scripted(LaneState& lane);
  bool resolve_next(LaneState& lane);
  bool fire(LaneState& lane, const Firing& firing);
  bool may_fire(const LaneState& lane, const Firing& firing);
  bool may_fire_after(const LaneState& lane, const plan::Step& step);
  bool open_receive(BoundConnection& connection);
  bool finish_lane(LaneState& lane);
  void next_step(LaneState& lane);
  const std::byte* message_address(BoundConnection& connection, std::size_t bytes);
  void move(const Firing& firing, std::size_t destination_count);

  std::vector<LaneState> lanes_;
  std::span<BoundPlan* const> channels_;
  ConnectionSource* source_ = nullptr;
  Call call_;
  std::size_t lanes_left_ = 0;
  bool has_pumps_ = false;
  std::vector<Firing::Source> current_sources_;  // of the lanes' `current`
  std::vector<Firing::Send> current_sends_;
  std::vector<const void*> sources_;
  std::vector<void*> destinations_;
  std::vector<std::uint8_t> scaled_;
};

}  // namespace rondo::executor
