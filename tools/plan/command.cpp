#include "tools/plan/command.hpp"

#include <rondo/error.hpp>

#include "algorithms/registry.hpp"
#include "plan/checker.hpp"
#include "plan/json.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

namespace rondo::tools {
namespace {

constexpr int most_exported = 4096;

struct Chosen {
  std::string collective = "all_reduce";
  std::string algorithm;
  int size = 0;
  int root = 0;
};

void add_choice(CLI::App& app, Chosen& chosen) {
  app.add_option("--coll", chosen.collective, "the collective (all_reduce)")->type_name("NAME");
  app.add_option("--algo", chosen.algorithm, "the algorithm; one that does not exist lists those that do")
      ->type_name("NAME");
  app.add_option("-n", chosen.size, "number of ranks")->type_name("N");
  app.add_option("--root", chosen.root, "the root, where the collective has one (0)")->type_name("RANK");
}

std::vector<plan::RankPlan> generate(const Chosen& chosen) {
  const algorithms::Algorithm* found = nullptr;
  std::string names;
  bool known = false;
  for (const algorithms::Algorithm& a : algorithms::all()) {
    if (name_of(a.collective) != chosen.collective) continue;
    known = true;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", a.name);
    if (a.name == chosen.algorithm) found = &a;
  }
  if (!known)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--coll {}: no algorithm makes plans of that", chosen.collective),
                "all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter or barrier");
  if (found == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--algo {}: {} has no such algorithm", chosen.algorithm, chosen.collective),
                fmt::format("it has {}", names));
  if (chosen.size < 1 || chosen.size > most_exported)
    throw Error(ErrorCode::invalid_argument, fmt::format("-n {}", chosen.size),
                fmt::format("use 1 to {} ranks", most_exported));
  if (chosen.root < 0 || chosen.root >= chosen.size)
    throw Error(ErrorCode::invalid_argument, fmt::format("--root {}", chosen.root),
                fmt::format("use 0 to {}", chosen.size - 1));
  return plan::generate_all(found->generate, {found->collective, chosen.size, chosen.root});
}

std::vector<plan::RankPlan> load(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", file, std::strerror(errno)),
                "name a file that can be read");
  std::string text;
  std::vector<char> part(std::size_t{1} << 20);
  while (stream.read(part.data(), static_cast<std::streamsize>(part.size())), stream.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > plan::largest_json) break;  // from_json() says so
  }
  if (stream.bad())
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", file, std::strerror(errno)),
                "name a file that can be read");
  return plan::from_json(text, file);
}

int check(const std::string& file) {
  const std::vector<plan::RankPlan> plans = load(file);
  const plan::CheckResult result = plan::check_plan(plans);
  if (!result.ok()) {
    fmt::print(stderr, "{}: {}\n", file, result.message);  // which names the kind of fault, rank, lane and step
    return 1;
  }
  const std::string what = fmt::format("{} {} of {} ranks", name_of(plans[0].collective), plans[0].name, plans.size());
  fmt::print("{}: {} is right: {} steps and {} messages a tile, {} tiles executed{}\n", file, what, result.steps,
             result.messages, result.tiles, result.rank_ordered ? ", every output reduced in rank order" : "");
  return 0;
}

// Through Graphviz where the file is to be a picture.
void draw(const std::vector<plan::RankPlan>& plans, const std::string& output) {
  const std::string graph = graph_of(plans);
  const auto ends_in = [&](const char* ending) { return output.ends_with(ending); };
  if (output.empty()) {
    fmt::print("{}", graph);
    return;
  }
  if (!ends_in(".svg") && !ends_in(".dot"))
    throw Error(ErrorCode::invalid_argument, fmt::format("-o {}", output), "end the name in .svg or .dot");
  const std::string text_file = ends_in(".dot") ? output : output + ".dot";
  {
    std::ofstream stream(text_file, std::ios::binary);
    stream << graph;
    if (!stream.flush())
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", text_file, std::strerror(errno)),
                  "name a file that can be written");
  }
  if (ends_in(".dot")) return;
  std::string words[] = {"dot", "-Tsvg", "-o", output, text_file};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data(), nullptr};
  pid_t dot = 0;
  int status = posix_spawnp(&dot, "dot", nullptr, nullptr, arguments, environ);
  if (status == 0 && (waitpid(dot, &status, 0) != dot || !WIFEXITED(status))) status = 1;
  if (status != 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("Graphviz could not draw {}", text_file),
                "install graphviz (its program dot), or give -o a name that ends in .dot");
  std::remove(text_file.c_str());
}

}  // namespace

std::string graph_of(std::span<const plan::RankPlan> plans) {
  std::string text = fmt::format(
      "digraph \"{} {} of {} ranks\" {{\n  node [shape=circle, fontname=\"DejaVu Sans\"];\n"
      "  edge [fontname=\"DejaVu Sans\", fontsize=9];\n",
      name_of(plans[0].collective), plans[0].name, plans.size());
  for (const plan::RankPlan& plan : plans) {
    text += fmt::format("  {}{};\n", plan.rank, plan.rank == plan.root ? " [shape=doublecircle]" : "");
    std::vector<std::int64_t> messages(plan.connections.size());
    for (const plan::Lane& lane : plan.lanes)
      for (const plan::Block& block : lane.blocks)
        for (const plan::Step& step : block.steps)
          for (const plan::Send& send : step.sends) messages[static_cast<std::size_t>(send.connection)] += block.count;
    for (std::size_t c = 0; c < plan.connections.size(); ++c) {
      const plan::Connection& connection = plan.connections[c];
      if (connection.direction != plan::Direction::outgoing) continue;
      text += fmt::format("  {} -> {} [label=\"{}{}\"{}];\n", plan.rank, connection.peer, messages[c],
                          connection.tag == 0 ? "" : fmt::format(" (tag {})", connection.tag),
                          connection.direct ? ", style=bold" : "");
    }
  }
  return text + "}\n";
}

int plan_command(std::span<const std::string> arguments) {
  CLI::App app("Plans as files: what a collective runs, as data.", "rondo plan");
  app.require_subcommand(1);
  Chosen chosen;
  std::string file, output;
  CLI::App* exporting = app.add_subcommand("export", "write a built-in algorithm's plan as JSON to standard output");
  add_choice(*exporting, chosen);
  CLI::App* checking = app.add_subcommand("check", "prove a plan right, or name the rank, lane and step that is wrong");
  checking->add_option("FILE", file, "a plan as JSON (docs/plan-format.md)")->required();
  CLI::App* drawing = app.add_subcommand("draw", "show who sends to whom, and how many messages a tile");
  drawing->add_option("FILE", file, "a plan as JSON; without one, a built-in algorithm's is drawn");
  add_choice(*drawing, chosen);
  drawing->add_option("-o", output,
                      "FILE.svg (Graphviz's dot draws it) or FILE.dot; without it, the graph's text is printed");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help("", CLI::AppFormatMode::All));
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "rondo plan: {}\n(rondo plan --help)\n", error.what());
    return 2;
  }
  if (checking->parsed()) return check(file);
  if (exporting->parsed()) fmt::print("{}", plan::to_json(generate(chosen)));
  else draw(file.empty() ? generate(chosen) : load(file), output);
  return 0;
}

}  // namespace rondo::tools
