// The far end of `rondo run --hosts`: runs on each host, once a rank, between the remote shell and the program.
//
// What to start arrives on its standard input, never on a command line, where everybody on the host could read the
// key. Behind it, each byte is a signal for the program. The input's end means that the launcher is gone: the program
// is ended too, so nothing outlives the launcher even across hosts.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace rondo::tools {

struct AgentJob {
  std::string host;  // as the launcher calls it, for error texts
  std::string directory;
  std::vector<std::string> environment;  // "NAME=value", over what the agent finds
  std::vector<std::string> program;
};

std::string encode_job(const AgentJob& job);

// Reads a job from standard input, runs it, and returns the exit code for main().
int run_agent();

}  // namespace rondo::tools
