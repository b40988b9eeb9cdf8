#include "plan/json.hpp"

#include <rondo/error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

namespace rondo::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view format_name = "rondo-plan";
constexpr std::int64_t format_version = 1;
constexpr std::string_view buffers[] = {"input", "output", "scratch"};
constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();

Json json_of(const ChunkRef& chunk) {
  Json found = {{"buffer", buffers[static_cast<std::size_t>(chunk.buffer)]}, {"base", chunk.base}};
  if (chunk.stride != 0) found["stride"] = chunk.stride;
  return found;
}

Json json_of(const Step& step, std::int64_t number) {
  Json found = {{"step", number}, {"operands", Json::array()}};
  for (const Operand& operand : step.operands) {
    if (operand.kind == Operand::Kind::local) found["operands"].push_back({{"chunk", json_of(operand.chunk)}});
    else found["operands"].push_back({{"receive", {{"conn", operand.connection}}}});
  }
  if (step.destination) found["store"] = {{"chunk", json_of(*step.destination)}};
  for (const Send& send : step.sends) {
    Json one = {{"conn", send.connection}};
    if (!send.flush) one["flush"] = false;
    found["sends"].push_back(std::move(one));
  }
  found["extent"] = {{"chunk", json_of(step.extent)}};
  for (const After& after : step.after)
    found["after"].push_back({{"lane", after.lane}, {"step", after.step}, {"lag", after.lag}});
  for (const std::int32_t connection : step.drain) found["drain"].push_back({{"conn", connection}});
  if (step.finish) found["finish"] = true;
  return found;
}

Json json_of(const Connection& connection, std::size_t number) {
  Json found = {{"conn", number},          {"direction", connection.direction == Direction::outgoing ? "out" : "in"},
                {"peer", connection.peer}, {"tag", connection.tag},
                {"lane", connection.lane}, {"slots_min", connection.slots_min}};
  if (connection.direct) found["direct"] = true;
  return found;
}

// A value of the file, and where it stands.
class Value {
 public:
  Value(const Json& json, std::string path, std::string_view file) : json_(json), path_(std::move(path)), file_(file) {}

  [[noreturn]] void refuse(const std::string& what, const std::string& allowed) const {
    throw Error(ErrorCode::plan, fmt::format("{}: {} {}", file_, path_.empty() ? "the file" : path_, what), allowed);
  }

  // An object with no keys but these; the schema's names are the ones that exist.
  const Value& object(std::initializer_list<std::string_view> keys) const {
    if (!json_.is_object()) refuse(fmt::format("is {}", kind()), "an object belongs here");
    for (const auto& [key, value] : json_.items()) {
      bool known = false;
      for (const std::string_view name : keys) known = known || key == name;
      if (!known)
        refuse(fmt::format("has a key \"{}\"", key.substr(0, 40)),
               fmt::format("its keys are {}", fmt::join(keys, ", ")));
    }
    return *this;
  }
  bool has(const char* key) const { return json_.contains(key); }
  Value at(const char* key) const {
    if (!json_.is_object() || !json_.contains(key))
      refuse(fmt::format("lacks \"{}\"", key), "docs/plan-format.md lists what belongs to a plan");
    return {json_.at(key), path_.empty() ? key : fmt::format("{}.{}", path_, key), file_};
  }
  std::vector<Value> list() const {
    if (!json_.is_array()) refuse(fmt::format("is {}", kind()), "a list belongs here");
    std::vector<Value> found;
    found.reserve(json_.size());
    for (std::size_t i = 0; i < json_.size(); ++i)
      found.emplace_back(json_.at(i), fmt::format("{}[{}]", path_, i), file_);
    return found;
  }
  std::vector<Value> list(const char* key) const { return has(key) ? at(key).list() : std::vector<Value>{}; }

  std::int32_t number(std::int64_t low, std::int64_t high) const {
    const auto allowed = fmt::format("a whole number from {} to {} belongs here", low, high);
    if (!json_.is_number_integer()) refuse(fmt::format("is {}", kind()), allowed);
    if (json_.is_number_unsigned() && json_.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
      refuse(fmt::format("is {}", json_.get<std::uint64_t>()), allowed);
    const auto value = json_.get<std::int64_t>();
    if (value < low || value > high) refuse(fmt::format("is {}", value), allowed);
    return static_cast<std::int32_t>(value);
  }
  std::int32_t number(const char* key, std::int64_t low, std::int64_t high) const { return at(key).number(low, high); }
  std::int32_t number(const char* key, std::int64_t low, std::int64_t high, std::int32_t otherwise) const {
    return has(key) ? number(key, low, high) : otherwise;
  }
  bool truth(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    const Value value = at(key);
    if (!value.json_.is_boolean()) value.refuse(fmt::format("is {}", value.kind()), "true or false belongs here");
    return value.json_.get<bool>();
  }
  std::string text() const {
    if (!json_.is_string()) refuse(fmt::format("is {}", kind()), "a text belongs here");
    return json_.get<std::string>();
  }
  // The value must be its own index in its list: readers count on it, and a wrong one is a slip of the writer.
  void is_number(const char* key, std::int64_t index) const {
    if (has(key)) number(key, index, index);
  }

 private:
  std::string kind() const {
    switch (json_.type()) {
      case Json::value_t::null: return "null";
      case Json::value_t::object: return "an object";
      case Json::value_t::array: return "a list";
      case Json::value_t::string: return "a text";
      case Json::value_t::boolean: return "true or false";
      case Json::value_t::number_float: return "a number with a fraction";
      default: return "a number";
    }
  }

  const Json& json_;
  std::string path_;
  std::string_view file_;
};

ChunkRef read_chunk(const Value& value, const RankPlan& plan) {
  value.object({"buffer", "base", "stride"});
  ChunkRef chunk;
  const std::string name = value.at("buffer").text();
  int buffer = 0;
  while (buffer < buffer_count && buffers[buffer] != name) ++buffer;
  if (buffer == buffer_count)
    value.at("buffer").refuse(fmt::format("is \"{}\"", name.substr(0, 40)), "use input, output or scratch");
  chunk.buffer = static_cast<Buffer>(buffer);
  const std::int32_t chunks = plan.chunks[buffer];
  if (chunks == 0)
    value.refuse(fmt::format("is a chunk of {}", name), fmt::format("rank {} has no {}", plan.rank, name));
  chunk.base = value.number("base", 0, chunks - 1);
  chunk.stride = value.number("stride", 1 - chunks, chunks - 1, 0);
  return chunk;
}

Step read_step(const Value& value, const RankPlan& plan) {
  value.object({"step", "operands", "store", "sends", "extent", "after", "drain", "finish"});
  const std::int64_t last = static_cast<std::int64_t>(plan.connections.size()) - 1;
  const auto connection = [&](const Value& holder) {
    if (last < 0) holder.refuse("uses a connection", fmt::format("rank {} has none", plan.rank));
    return holder.number("conn", 0, last);
  };
  Step step;
  for (const Value& operand : value.at("operands").list()) {
    operand.object({"chunk", "receive"});
    if (operand.has("chunk") == operand.has("receive"))
      operand.refuse("has both or neither of chunk and receive", "an operand is one of the two");
    if (operand.has("chunk")) {
      step.operands.push_back({Operand::Kind::local, read_chunk(operand.at("chunk"), plan), -1});
    } else {
      step.operands.push_back({Operand::Kind::receive, {}, connection(operand.at("receive").object({"conn"}))});
    }
  }
  if (value.has("store")) step.destination = read_chunk(value.at("store").object({"chunk"}).at("chunk"), plan);
  for (const Value& send : value.list("sends")) {
    send.object({"conn", "flush"});
    step.sends.push_back({connection(send), send.truth("flush", true)});
  }
  step.extent = read_chunk(value.at("extent").object({"chunk"}).at("chunk"), plan);
  for (const Value& after : value.list("after")) {
    after.object({"lane", "step", "lag"});
    step.after.push_back({after.number("lane", 0, most), after.number("step", 0, most), after.number("lag", 0, most)});
  }
  for (const Value& drain : value.list("drain")) step.drain.push_back(connection(drain.object({"conn"})));
  step.finish = value.truth("finish", false);
  return step;
}

Connection read_connection(const Value& value, std::int32_t size, std::int32_t lanes) {
  value.object({"conn", "direction", "peer", "tag", "lane", "slots_min", "direct"});
  Connection connection;
  const std::string direction = value.at("direction").text();
  if (direction != "out" && direction != "in")
    value.at("direction").refuse(fmt::format("is \"{}\"", direction.substr(0, 40)), "use out or in");
  connection.direction = direction == "out" ? Direction::outgoing : Direction::incoming;
  connection.peer = value.number("peer", 0, size - 1);
  connection.tag = value.number("tag", 0, most, 0);
  connection.lane = value.number("lane", 0, lanes - 1);
  connection.slots_min = value.number("slots_min", 1, most, 1);
  connection.direct = value.truth("direct", false);
  return connection;
}

RankPlan read_rank(const Value& value, const RankPlan& common, std::int32_t rank) {
  value.object({"rank", "chunks", "scratch_tiles", "connections", "lanes"});
  value.is_number("rank", rank);
  RankPlan plan = common;
  plan.rank = rank;
  const Value chunks = value.at("chunks");
  chunks.object({"input", "output", "scratch"});
  for (int b = 0; b < buffer_count; ++b)
    plan.chunks[b] =
        chunks.number(std::string(buffers[b]).c_str(), 0, most, b == static_cast<int>(Buffer::scratch) ? 0 : -1);
  for (int b = 0; b < 2; ++b)
    if (plan.chunks[b] < 0) chunks.at(std::string(buffers[b]).c_str());
  plan.scratch_tiles = value.number("scratch_tiles", 1, most, 1);
  const std::vector<Value> lanes = value.at("lanes").list();
  for (const Value& connection : value.list("connections")) {
    connection.is_number("conn", static_cast<std::int64_t>(plan.connections.size()));
    plan.connections.push_back(read_connection(connection, plan.size, static_cast<std::int32_t>(lanes.size())));
  }
  for (const Value& one : lanes) {
    one.object({"lane", "blocks"}).is_number("lane", static_cast<std::int64_t>(plan.lanes.size()));
    Lane& lane = plan.lanes.emplace_back();
    std::int64_t number = 0;  // of a step, loops unrolled
    for (const Value& each : one.at("blocks").list()) {
      each.object({"count", "steps"});
      Block& block = lane.blocks.emplace_back();
      block.count = each.number("count", 1, most, 1);
      for (const Value& step : each.at("steps").list()) {
        step.is_number("step", number + static_cast<std::int64_t>(block.steps.size()));
        block.steps.push_back(read_step(step, plan));
      }
      number += std::int64_t{block.count} * static_cast<std::int64_t>(block.steps.size());
      if (number > most)
        each.refuse(fmt::format("brings the lane to {} steps", number), fmt::format("at most {}", most));
    }
  }
  return plan;
}

}  // namespace

std::string to_json(std::span<const RankPlan> plans) {
  const RankPlan& first = plans[0];
  std::string text = fmt::format(
      "{{\n\"format\": \"{}\", \"version\": {}, \"name\": {}, \"collective\": \"{}\", \"size\": {}, \"root\": {}, "
      "\"rank_ordered\": {},\n\"ranks\": [\n",
      format_name, format_version, Json(first.name).dump(), name_of(first.collective), first.size, first.root,
      first.rank_ordered);
  // By hand around the leaves, so that a line is a connection or a step.
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const RankPlan& plan = plans[r];
    text += fmt::format(
        "{{\"rank\": {}, \"chunks\": {{\"input\": {}, \"output\": {}, \"scratch\": {}}}, "
        "\"scratch_tiles\": {},\n \"connections\": [",
        plan.rank, plan.chunks[0], plan.chunks[1], plan.chunks[2], plan.scratch_tiles);
    for (std::size_t c = 0; c < plan.connections.size(); ++c)
      text += fmt::format("{}\n  {}", c == 0 ? "" : ",", json_of(plan.connections[c], c).dump());
    text += "],\n \"lanes\": [";
    for (std::size_t l = 0; l < plan.lanes.size(); ++l) {
      text += fmt::format("{}\n  {{\"lane\": {}, \"blocks\": [", l == 0 ? "" : ",", l);
      std::int64_t number = 0;
      for (std::size_t b = 0; b < plan.lanes[l].blocks.size(); ++b) {
        const Block& block = plan.lanes[l].blocks[b];
        text += fmt::format("{}\n   {{\"count\": {}, \"steps\": [", b == 0 ? "" : ",", block.count);
        for (std::size_t s = 0; s < block.steps.size(); ++s)
          text += fmt::format("{}\n    {}", s == 0 ? "" : ",",
                              json_of(block.steps[s], number + static_cast<std::int64_t>(s)).dump());
        text += "]}";
        number += std::int64_t{block.count} * static_cast<std::int64_t>(block.steps.size());
      }
      text += "]}";
    }
    text += fmt::format("]}}{}\n", r + 1 == plans.size() ? "" : ",");
  }
  return text + "]}\n";
}

std::vector<RankPlan> from_json(std::string_view text, std::string_view file) {
  if (text.size() > largest_json)
    throw Error(ErrorCode::plan, fmt::format("{}: {} bytes", file, text.size()),
                fmt::format("a plan's file has at most {} bytes", largest_json));
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorCode::plan, fmt::format("{}: {}", file, error.what()), "a plan is a file of JSON");
  }
  const Value top(json, "", file);
  top.object({"format", "version", "name", "collective", "size", "root", "rank_ordered", "ranks"});
  if (top.at("format").text() != format_name)
    top.at("format").refuse("is of something else", fmt::format("\"{}\" belongs here", format_name));
  top.number("version", format_version, format_version);
  RankPlan common;
  common.name = top.at("name").text();
  const std::string collective = top.at("collective").text();
  bool known = false;
  for (int c = 0; c < collective_count; ++c)
    if (name_of(static_cast<Collective>(c)) == collective) {
      common.collective = static_cast<Collective>(c);
      known = true;
    }
  if (!known)
    top.at("collective").refuse(fmt::format("is \"{}\"", collective.substr(0, 40)), "all_reduce, for example");
  const std::vector<Value> ranks = top.at("ranks").list();
  if (ranks.empty()) top.at("ranks").refuse("is empty", "a plan has at least one rank");
  common.size = top.number("size", static_cast<std::int64_t>(ranks.size()), static_cast<std::int64_t>(ranks.size()));
  common.root = top.number("root", 0, common.size - 1, 0);
  common.rank_ordered = top.truth("rank_ordered", false);
  std::vector<RankPlan> plans;
  plans.reserve(ranks.size());
  for (const Value& rank : ranks) plans.push_back(read_rank(rank, common, static_cast<std::int32_t>(plans.size())));
  return plans;
}

}  // namespace rondo::plan
