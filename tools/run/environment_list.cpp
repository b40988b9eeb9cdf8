#include "tools/run/environment_list.hpp"

#include <unistd.h>

#include <algorithm>

namespace rondo::tools {

namespace {

std::string_view name_in(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

std::vector<std::string> process_environment_list() {
  std::vector<std::string> list;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) list.emplace_back(*entry);
  return list;
}

std::vector<std::string> without_variables(std::vector<std::string> base, std::span<const std::string_view> names) {
  std::erase_if(base, [&](const std::string& entry) {
    return std::find(names.begin(), names.end(), name_in(entry)) != names.end();
  });
  return base;
}

std::vector<std::string> merge_environment(std::vector<std::string> base, std::span<const std::string> over) {
  std::vector<std::string_view> names;
  for (const std::string& entry : over) names.push_back(name_in(entry));
  base = without_variables(std::move(base), names);
  base.insert(base.end(), over.begin(), over.end());
  return base;
}

}  // namespace rondo::tools
