// Environments as lists of "NAME=value", as exec() takes them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::tools {

std::vector<std::string> process_environment_list();
// `base` without the variables named.
std::vector<std::string> without_variables(std::vector<std::string> base, std::span<const std::string_view> names);
// `base` with `over` in place of, or beside, what it has.
std::vector<std::string> merge_environment(std::vector<std::string> base, std::span<const std::string> over);

}  // namespace rondo::tools
