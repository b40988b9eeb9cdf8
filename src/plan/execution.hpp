// The dynamic half of the checker: executes a wired plan on symbols. Internal to the checker.
//
// Two memories run side by side, one where output is apart from input and one where it is aliased as the collective's
// in-place form says; races are judged on the latter, whose conflicts include the former's. Messages of direct
// connections are taken as references wherever the executor may send one, which only adds accesses.
// Slots bound the sends, but the order that a returned slot implies is not relied upon, since a transport may have more
// of them; only a drain orders.
#pragma once

#include "plan/checker.hpp"
#include "plan/clocks.hpp"
#include "plan/network.hpp"
#include "plan/symbols.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace rondo::plan {

// In which order lanes take the steps of a tile.
enum class TileOrder : std::uint8_t {
  program,
  // Sorted by length, otherwise in program order: as if each length had a tile to itself (docs/plans.md, "Uneven
  // chunks"). For plans without scratch and without `after`.
  by_length,
};

// Value is HashValue or ExactValue.
template <class Value>
class Execution {
 public:
  Execution(std::span<const RankPlan> plans, const Network& network, std::int32_t tiles,
            TileOrder order = TileOrder::program);
  CheckResult run();

 private:
  enum Mode : std::size_t { out_of_place, in_place, modes };
  static constexpr std::int32_t none = -1;

  struct LaneState {
    std::int32_t tile = 0;
    std::size_t block = 0;
    std::int32_t turn = 0;  // j
    std::size_t step = 0;
    std::int64_t step_of_tile = 0;
    std::size_t position = 0;   // in order_
    std::uint32_t tick = 0;     // steps completed in all tiles
    std::size_t condition = 0;  // of the current step: those before it hold
    bool finished = false;
    bool queued = false;
    Clocks::Id clock = 0;
    // What it is blocked on, for the diagnosis.
    std::int32_t blocked_wire = none;
    std::int32_t blocked_lane = none;
    std::vector<std::int32_t> waiters;  // lanes whose `after` waits for this one
  };

  struct Position {
    std::int64_t length = 0;
    std::size_t block = 0;
    std::size_t step = 0;
    std::int32_t turn = 0;
    std::int64_t step_of_tile = 0;
  };

  struct Message {
    Value value[modes];
    std::int64_t length = 0;
    std::int32_t next = none;
    Clocks::Id clock = 0;
    std::uint32_t tick = 0;
    std::int32_t reference = none;  // the pending access in accesses_, if this is a reference
  };

  struct WireState {
    std::int32_t head = none, tail = none;
    std::int32_t in_flight = 0;
    bool receiver_waits = false, sender_waits = false;
    Clocks::Id released_clock = 0;
    std::uint32_t released_tick = 0;
  };

  // Accesses to a chunk since it was last written; tick 0 is a reference that has not been read yet.
  struct Access {
    std::int32_t lane = 0;
    std::uint32_t tick = 0;
    std::int32_t next = none;
  };
  struct Cell {
    std::int32_t writer = none;
    std::uint32_t written = 0;
    std::int32_t readers = none;
  };
  struct Moment {
    Clocks::Id clock = 0;
    std::uint32_t tick = 0;
  };

  const RankPlan& plan_of(std::int32_t lane) const {
    return plans_[static_cast<std::size_t>(network_.lanes[static_cast<std::size_t>(lane)].rank)];
  }
  void lay_out();
  void sort_steps();
  void go_to(std::int32_t lane, std::size_t position);
  void fill_inputs();
  std::size_t cell(const RankPlan& plan, Buffer buffer, std::int32_t chunk, std::int32_t tile, Mode mode) const;
  std::int32_t alias_of(const RankPlan& plan, std::int32_t output_chunk) const;
  std::int32_t wire_of(const RankPlan& plan, std::int32_t connection) const {
    return network_
        .wire_of_end[static_cast<std::size_t>(network_.end_base[static_cast<std::size_t>(plan.rank)] + connection)];
  }

  void make_ready(std::int32_t lane);
  bool conditions_hold(std::int32_t lane, const RankPlan& plan, const Step& step);
  void fire(std::int32_t lane, const RankPlan& plan, const Step& step);
  void advance(std::int32_t lane, const Lane& code);
  void send(std::int32_t lane, std::int32_t wire, const Value (&value)[modes], std::int64_t length,
            std::int32_t reference);
  std::int32_t take_message(std::int32_t lane, std::int32_t wire);
  void read(std::int32_t lane, std::size_t at, const ChunkRef& ref);
  void write(std::int32_t lane, std::size_t at, const ChunkRef& ref);
  std::int32_t add_access(std::size_t at, std::int32_t lane, std::uint32_t tick);
  bool happened_before(std::int32_t lane, std::uint32_t tick, std::int32_t current) const;
  void check_finish(std::int32_t lane, const Value (&value)[modes], std::int64_t length, std::int32_t tile);

  CheckResult deadlock() const;
  CheckResult judge_outputs();
  Value complete(const RankPlan& plan, std::int32_t chunk, std::int32_t tile) const;
  Value promised(const RankPlan& plan, std::int32_t chunk, std::int32_t tile) const;
  std::string describe(const Value& value, const Value& wanted) const;
  [[noreturn]] void refuse(std::int32_t lane, Violation violation, const std::string& what) const;

  std::span<const RankPlan> plans_;
  const Network& network_;
  std::int32_t tiles_;
  TileOrder tile_order_;
  std::vector<std::vector<Position>> order_;  // of each lane; empty in program order
  bool reduces_;
  bool races_;
  std::vector<LaneState> lanes_;
  std::vector<WireState> wires_;
  std::vector<Message> messages_;
  std::int32_t free_message_ = none;
  std::deque<std::int32_t> ready_;
  std::vector<std::size_t> cell_base_;  // of a rank
  std::vector<Value> memory_[modes];
  std::vector<Cell> cells_;
  std::vector<Access> accesses_;
  std::int32_t free_access_ = none;
  std::vector<std::vector<Moment>> moments_;  // of an awaited lane: at the end of each step
  std::vector<Value> complete_;               // by tile and chunk, of collectives that reduce
  Clocks clocks_;
};

extern template class Execution<HashValue>;
extern template class Execution<ExactValue>;

// Ends an execution at its first violation.
struct Violated {
  CheckResult result;
};

}  // namespace rondo::plan
