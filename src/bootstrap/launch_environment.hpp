// Which ranks a launcher's environment describes: rondo run, torchrun, Open MPI, Slurm.
#pragma once

#include <rondo/unique_id.hpp>

#include <functional>
#include <optional>
#include <string>

namespace rondo::bootstrap {

// Looks a variable up; an empty one means unset.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
Lookup process_environment();

struct LaunchEnvironment {
  std::string source;  // "rondo run", "torchrun", "Open MPI", "Slurm": for logs and errors
  int rank = 0;
  int size = 1;
  UniqueId id;  // rank 0 has started the rendezvous if the launcher does not host it
};

// Throws Error(configuration) when no launcher is recognised (the hint shows `rondo run -n 4 -- program`), when sources
// disagree, when a value is malformed (value, constraint, example), or when ranks on several hosts have no key.
LaunchEnvironment read_launch_environment(const Lookup& lookup);

}  // namespace rondo::bootstrap
