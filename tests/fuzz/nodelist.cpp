// Slurm's compressed lists of hosts.
#include "bootstrap/nodelist.hpp"

#include "harness/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rondo::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (const char* text : {"gpu1", "node[03-05,7],gpu1", "r[0-3]n[00-15]", "a[7]b[8]c", "x[1-9],y[08-11]z,w"}) {
    inputs.push_back(bytes_of(text));
  }
  return inputs;
}

bool parse(std::span<const std::byte> input) {
  const std::string text = text_of(input);
  return accepts(
      [&] {
        const auto hosts = bootstrap::expand_nodelist("SLURM_STEP_NODELIST", text);
        require(hosts.size() <= 65536, "the number of hosts has its limit");
        std::size_t bytes = 0;
        for (const std::string& host : hosts) {
          bytes += host.size();
          require(!host.empty() && host.find_first_of(",[]") == std::string::npos, "a name is a name");
        }
        require(bytes <= hosts.size() * 255, "a name is no longer than a host's may be");
        if (hosts.size() > 4096) return;  // expanding the longest lists again would take most of the time
        require(bootstrap::expand_nodelist("", fmt::format("{}", fmt::join(hosts, ","))) == hosts,
                "an expanded list is its own expansion");
      },
      {ErrorCode::configuration});
}

}  // namespace rondo::fuzz
