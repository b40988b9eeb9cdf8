// The command line of `rondo run`, checked.
#pragma once

#include "base/system.hpp"

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace rondo::tools {

inline constexpr int most_ranks = 65536;

struct RunOptions {
  int size = 1;
  std::vector<std::string> hosts;  // empty: all ranks are on this host
  std::vector<std::string> agent;  // words, with {host} and perhaps {command} in them
  bool prefix = true;
  std::optional<base::Nanoseconds> timeout;
  std::vector<std::string> program;
};

// What main() prints before it exits with `code`.
struct Exit {
  int code = 0;
  std::string output;  // to stdout if code is 0, else to stderr
};

// `arguments`: what stands after "rondo run".
std::variant<RunOptions, Exit> parse_run_command(std::span<const std::string> arguments);

// "ssh -p 22 {host}" -> words. Quotes ('..' and "..") hold words with blanks together. Throws
// Error(invalid_argument) on an unclosed quote.
std::vector<std::string> split_words(const std::string& text);

// Where a rank runs.
struct Place {
  int rank = 0;
  int local_rank = 0;
  int local_size = 1;
  std::string host;  // "": this one
};
// Consecutive ranks share a host; the first hosts get one more where it doesn't come out even.
std::vector<Place> place_ranks(int size, const std::vector<std::string>& hosts);

}  // namespace rondo::tools
