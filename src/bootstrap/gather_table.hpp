// GatherTable: what the control tree knows of all-gathers under way, on members[0] and on the others. Not thread-safe:
// the tree's lock guards it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace rondo::bootstrap {

struct GatherKey {
  std::uint64_t context = 0;
  std::uint64_t sequence = 0;
  auto operator<=>(const GatherKey&) const = default;
};

class GatherTable {
 public:
  struct Gather {
    std::map<int, std::vector<std::byte>> parts;                // on members[0], by rank
    std::optional<std::vector<std::vector<std::byte>>> result;  // on the others, in members' order
    std::optional<std::vector<int>> arrived;                    // the answer to a query
    bool waited = false;                                        // a caller of this rank is in it
  };

  // Parts may come before this rank's own call, and after it has given up.
  Gather& at(const GatherKey& key);
  void erase(const GatherKey& key) { gathers_.erase(key); }
  // A caller is done, or gave up: what has arrived stays, so that late callers' queries are answered, as long as there
  // is room.
  void give_up(const GatherKey& key) {
    const auto found = gathers_.find(key);
    if (found != gathers_.end()) found->second.waited = false;
  }

 private:
  static constexpr std::size_t most = 1024;
  std::map<GatherKey, Gather> gathers_;
};

}  // namespace rondo::bootstrap
