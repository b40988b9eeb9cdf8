// The `rondo` program: one subcommand a tool.
#include <rondo/error.hpp>
#include <rondo/version.hpp>

#include "base/environment.hpp"
#include "base/socket.hpp"
#include "bootstrap/rendezvous.hpp"
#include "tools/plan/command.hpp"
#include "tools/run/agent.hpp"
#include "tools/run/command_line.hpp"
#include "tools/run/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace {

constexpr int usage_error = 2;
constexpr int launch_error = 125;  // as timeout(1) and env(1): the launcher itself failed

constexpr const char* usage =
    "rondo run -n N [options] -- program arguments   start a program as N ranks (rondo run --help)\n"
    "rondo plan export | check | draw                plans as JSON and pictures (rondo plan --help)\n"
    "rondo variables                                 all RONDO_* environment variables\n"
    "rondo --version\n";

int run(std::span<const std::string> arguments) {
  using namespace rondo;
  auto parsed = tools::parse_run_command(arguments);
  if (const auto* exit = std::get_if<tools::Exit>(&parsed)) {
    fmt::print(exit->code == 0 ? stdout : stderr, "{}", exit->output);
    return exit->code;
  }
  auto& options = std::get<tools::RunOptions>(parsed);
  // Once here instead of once a rank.
  base::refuse_unknown_variables(base::process_variable_names());
  const tools::SignalState signals = tools::take_over_signals();
  std::vector<base::SocketAddress> addresses;
  if (options.hosts.empty()) {
    // Nobody outside this host has any business with it.
    addresses.push_back(base::SocketAddress::parse("127.0.0.1"));
  } else {
    addresses = base::usable_addresses(base::process_variables()("RONDO_INTERFACES").value_or(""));
  }
  const bootstrap::Rendezvous rendezvous =
      bootstrap::start_rendezvous(addresses, bootstrap::port_range_from_environment(), bootstrap::random_key());
  tools::Launcher launcher(std::move(options), rendezvous.id().to_string(), signals);
  return launcher.run();
}

void print_variables() {
  for (const rondo::base::Variable& v : rondo::base::known_variables()) {
    fmt::print("{}  ({}; {}{})\n    {}\n    for example {}={}\n", v.name, v.type, v.default_value,
               v.same ? "; the same on all ranks" : "", v.meaning, v.name, v.example);
  }
}

// Descriptors 0 to 2 may be closed; what is opened next must not take their places.
void open_standard_streams() {
  int fd = 0;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const std::string command = arguments.empty() ? std::string() : arguments.front();
  try {
    if (command == "run") return run(std::span(arguments).subspan(1));
    if (command == "run-agent") return rondo::tools::run_agent();
    if (command == "plan") return rondo::tools::plan_command(std::span(arguments).subspan(1));
    if (command == "variables") {
      print_variables();
      return 0;
    }
    if (command == "--version") {
      fmt::print("rondo {}.{}.{}\n", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH);
      return 0;
    }
    if (command == "--help" || command == "-h") {
      fmt::print("{}", usage);
      return 0;
    }
    if (command.empty()) fmt::print(stderr, "{}", usage);
    else fmt::print(stderr, "rondo: there is no command '{}'\n{}", command, usage);
    return usage_error;
  } catch (const std::exception& e) {
    fmt::print(stderr, "rondo {}: {}\n", command, e.what());
    return launch_error;
  }
}
