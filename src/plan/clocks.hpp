// Vector clocks for the checker's race detection: one count a lane, shared copy-on-write.
//
// Most lanes learn nothing between two messages, so a message carries a counted reference to its lane's clock as it
// stood, and the lane copies it only when it next learns something. Clock 0 knows nothing. One thread; no errors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo::plan {

class Clocks {
 public:
  using Id = std::int32_t;

  explicit Clocks(std::size_t lanes) : lanes_(lanes), counts_(lanes, 0), holders_(1, 1) {}

  void hold(Id id) { ++holders_[static_cast<std::size_t>(id)]; }
  void drop(Id id) {
    if (--holders_[static_cast<std::size_t>(id)] == 0) free_.push_back(id);
  }

  std::uint32_t at(Id id, std::int32_t lane) const { return counts_[offset(id) + static_cast<std::size_t>(lane)]; }

  // Adds to the clock `mine`, which the caller holds, what `other` knows and `tick` of `lane`.
  void join(Id& mine, Id other, std::int32_t lane, std::uint32_t tick) {
    if (other == 0 || other == mine) {
      if (at(mine, lane) >= tick) return;
      make_own(mine);
    } else if (holders_[static_cast<std::size_t>(mine)] == 1 && mine != 0) {
      const std::uint32_t* from = &counts_[offset(other)];
      std::uint32_t* to = &counts_[offset(mine)];
      for (std::size_t i = 0; i < lanes_; ++i) to[i] = std::max(to[i], from[i]);
    } else {
      const Id fresh = allocate();
      const std::uint32_t* a = &counts_[offset(mine)];
      const std::uint32_t* b = &counts_[offset(other)];
      std::uint32_t* to = &counts_[offset(fresh)];
      for (std::size_t i = 0; i < lanes_; ++i) to[i] = std::max(a[i], b[i]);
      drop(mine);
      mine = fresh;
    }
    std::uint32_t& count = counts_[offset(mine) + static_cast<std::size_t>(lane)];
    count = std::max(count, tick);
  }

 private:
  std::size_t offset(Id id) const { return static_cast<std::size_t>(id) * lanes_; }

  Id allocate() {
    if (free_.empty()) {
      holders_.push_back(1);
      counts_.resize(counts_.size() + lanes_);
      return static_cast<Id>(holders_.size() - 1);
    }
    const Id id = free_.back();
    free_.pop_back();
    holders_[static_cast<std::size_t>(id)] = 1;
    return id;
  }

  void make_own(Id& id) {
    if (holders_[static_cast<std::size_t>(id)] == 1 && id != 0) return;
    const Id fresh = allocate();
    std::copy_n(counts_.begin() + static_cast<std::ptrdiff_t>(offset(id)), lanes_,
                counts_.begin() + static_cast<std::ptrdiff_t>(offset(fresh)));
    drop(id);
    id = fresh;
  }

  std::size_t lanes_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::int32_t> holders_;
  std::vector<Id> free_;
};

}  // namespace rondo::plan
