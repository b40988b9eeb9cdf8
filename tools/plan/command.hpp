// `rondo plan`: plans as files. export writes a built-in algorithm's, check proves one right or says what is wrong,
// draw shows who sends to whom.
#pragma once

#include "plan/plan.hpp"

#include <span>
#include <string>

namespace rondo::tools {

// `arguments`: what stands after "rondo plan". Prints; returns the exit status: 0, 1 (the plan is wrong), 2 (the
// command line is). Throws Error for files that cannot be read or written and plans that cannot be parsed.
int plan_command(std::span<const std::string> arguments);

// Graphviz's description of a plan: a node a rank, an edge a connection with the messages it carries for one tile.
std::string graph_of(std::span<const plan::RankPlan> plans);

}  // namespace rondo::tools
