#include "tools/run/command_line.hpp"

#include <rondo/error.hpp>

#include "base/format.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

namespace rondo::tools {

namespace {

constexpr int usage_error = 2;
constexpr const char* example = "rondo run -n 4 -- program arguments";

Exit refuse(const std::string& why) {
  return {usage_error,
          fmt::format("rondo run: {}\n  for example: {}\n  rondo run --help shows all options\n", why, example)};
}

std::optional<base::Nanoseconds> parse_timeout(const std::string& text) {
  // A plain number means seconds. Only that: "5m" and an "s" would be five milliseconds.
  const bool plain = text.find_first_not_of("0123456789.") == std::string::npos;
  return base::parse_duration(plain ? text + "s" : text);
}

}  // namespace

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (const char c : text) {
    if (quote != '\0') {
      if (c == quote) quote = '\0';
      else word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t') {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != '\0') {
    throw Error(ErrorCode::invalid_argument, fmt::format("the quote {} in \"{}\" is not closed", quote, text));
  }
  if (in_word) words.push_back(word);
  return words;
}

std::variant<RunOptions, Exit> parse_run_command(std::span<const std::string> arguments) {
  // Everything behind "--" belongs to the program.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> own(arguments.begin(), dashes);

  CLI::App app("Starts a program as several ranks, on this host or several, and ends them together.", "rondo run");
  std::string size = "1";
  std::string hosts;
  std::string agent = "ssh {host}";
  std::string timeout;
  bool no_prefix = false;
  app.add_option("-n", size, "number of ranks (1)")->type_name("N");
  app.add_option("--hosts", hosts, "hosts for the ranks, in blocks of consecutive ranks")->type_name("A,B,..");
  const CLI::Option* agent_option =
      app.add_option("--agent", agent,
                     "how to start a command on a host (ssh {host}); {host} becomes the host, {command} the command as "
                     "one word; without {command} its words are added behind")
          ->type_name("WORDS");
  app.add_flag("--no-prefix", no_prefix, "no rank in front of each line of output");
  app.add_option("--timeout", timeout, "end all ranks after this time (seconds, or with unit: 90s, 10min)")
      ->type_name("TIME");
  app.footer("-- program arguments   what to start; nothing behind -- is taken for an option\n\ndocs/launching.md");
  app.allow_extras();
  try {
    std::vector<std::string> reversed(own.rbegin(), own.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, app.help()};
  } catch (const CLI::ParseError& e) {
    return refuse(e.what());
  }
  const std::vector<std::string> extras = app.remaining();
  if (!extras.empty()) {
    if (extras.front().rfind('-', 0) == 0) return refuse(fmt::format("there is no option {}", extras.front()));
    return refuse(fmt::format("'{}' is no option; put -- before the program", extras.front()));
  }
  if (dashes == arguments.end()) return refuse("-- and the program are missing");
  if (dashes + 1 == arguments.end()) return refuse("there is no program behind --");

  RunOptions options;
  const auto n = base::parse_integer(size);
  if (!n || *n < 1 || *n > most_ranks) {
    return refuse(fmt::format("-n {}: the number of ranks is a whole number from 1 to {}", size, most_ranks));
  }
  options.size = static_cast<int>(*n);
  options.prefix = !no_prefix;
  if (!timeout.empty()) {
    options.timeout = parse_timeout(timeout);
    if (!options.timeout || *options.timeout <= 0) {
      return refuse(
          fmt::format("--timeout {}: must be a time above zero, such as 90 (seconds), 500ms or 10min", timeout));
    }
  }
  for (std::size_t start = 0; !hosts.empty() && start <= hosts.size();) {
    const std::size_t end = std::min(hosts.find(',', start), hosts.size());
    const std::string host = hosts.substr(start, end - start);
    // A host that begins with a hyphen would be taken for an option of the agent.
    if (host.empty() || host.front() == '-') {
      return refuse(fmt::format("--hosts {}: '{}' is no host; names are joined by commas", hosts, host));
    }
    if (std::find(options.hosts.begin(), options.hosts.end(), host) != options.hosts.end()) {
      return refuse(fmt::format("--hosts {}: '{}' is named twice", hosts, host));
    }
    options.hosts.push_back(host);
    start = end + 1;
  }
  if (options.hosts.size() > static_cast<std::size_t>(options.size)) {
    return refuse(fmt::format("-n {} ranks do not reach {} hosts; give at least one rank a host", options.size,
                              options.hosts.size()));
  }
  if (options.hosts.empty() && agent_option->count() > 0) {
    return refuse("--agent has no meaning without --hosts");
  }
  try {
    options.agent = split_words(agent);
  } catch (const Error& e) {
    return refuse(fmt::format("--agent: {}", e.what()));
  }
  if (options.agent.empty()) return refuse("--agent is empty; for example --agent 'ssh {host}'");
  options.program.assign(dashes + 1, arguments.end());
  if (options.program.front().empty()) return refuse("the program's name is empty");
  return options;
}

std::vector<Place> place_ranks(int size, const std::vector<std::string>& hosts) {
  const int count = std::max(1, static_cast<int>(hosts.size()));
  std::vector<Place> places;
  int rank = 0;
  for (int h = 0; h < count; ++h) {
    const int local_size = size / count + (h < size % count ? 1 : 0);
    const std::string host = hosts.empty() ? std::string() : hosts[static_cast<std::size_t>(h)];
    for (int local = 0; local < local_size; ++local) places.push_back({rank++, local, local_size, host});
  }
  return places;
}

}  // namespace rondo::tools
