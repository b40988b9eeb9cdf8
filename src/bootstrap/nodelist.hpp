// Slurm's compressed lists of hosts: "node[03-05,7],gpu1" names node03, node04, node05, node7 and gpu1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo::bootstrap {

// The hosts in order. Several brackets in one name multiply, the last one changing fastest. Throws
// Error(configuration), naming `variable`, on malformed text, more than 65536 hosts and names of more than 255 letters.
std::vector<std::string> expand_nodelist(std::string_view variable, std::string_view text);

}  // namespace rondo::bootstrap
