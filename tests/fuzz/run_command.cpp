// The command line of `rondo run`, a line an argument.
#include "tools/run/command_line.hpp"

#include "base/format.hpp"
#include "harness/target.hpp"

namespace rondo::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (const char* text : {"-n\n4\n--\nprogram\n-x", "-n\n4\n--hosts\na,b\n--agent\nssh -p 22 {host}\n--\nprogram",
                           "--timeout\n90\n--no-prefix\n--\np", "--timeout\n10min\n--\np",
                           "--hosts\na\n--agent\nsh -c '{host} \"x\" {command}'\n--\np"}) {
    inputs.push_back(bytes_of(text));
  }
  return inputs;
}

bool parse(std::span<const std::byte> input) {
  const auto lines = lines_of(input);
  const auto parsed = tools::parse_run_command(lines);
  if (const auto* exit = std::get_if<tools::Exit>(&parsed)) {
    require(!exit->output.empty() && (exit->code == 0 || exit->code == 2), "who is refused is told why");
    return false;
  }
  const auto& options = std::get<tools::RunOptions>(parsed);
  require(options.size >= 1 && options.size <= tools::most_ranks, "the number of ranks has its limits");
  require(!options.program.empty() && !options.program.front().empty(), "there is a program");
  require(!options.agent.empty(), "there is an agent");
  require(!options.timeout || *options.timeout > 0, "a timeout is above zero");
  // What has a unit means what it means everywhere else.
  for (std::size_t i = 0; options.timeout && i + 1 < lines.size() && lines[i] != "--"; ++i) {
    if (lines[i] != "--timeout") continue;
    if (const auto meant = base::parse_duration(lines[i + 1])) require(meant == options.timeout, "a unit counts");
    else
      require(base::parse_integer(lines[i + 1]) || lines[i + 1].find_first_not_of("0123456789.") == std::string::npos,
              "without a unit there are digits alone");
  }
  const auto places = tools::place_ranks(options.size, options.hosts);
  require(places.size() == static_cast<std::size_t>(options.size), "every rank has a place");
  for (std::size_t i = 0; i < places.size(); ++i) {
    require(places[i].rank == static_cast<int>(i) && places[i].local_rank < places[i].local_size, "ranks are in order");
  }
  return true;
}

}  // namespace rondo::fuzz
