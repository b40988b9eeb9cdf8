#include "bootstrap/gather_table.hpp"

#include <iterator>

namespace rondo::bootstrap {

GatherTable::Gather& GatherTable::at(const GatherKey& key) {
  const auto found = gathers_.find(key);
  if (found != gathers_.end()) return found->second;
  if (gathers_.size() >= most) {
    for (auto it = gathers_.begin(); it != gathers_.end(); ++it) {
      if (it->second.waited) continue;
      gathers_.erase(it);
      break;
    }
  }
  return gathers_[key];
}

}  // namespace rondo::bootstrap
