#include "tuner/choice.hpp"

#include <rondo/error.hpp>

#include "base/format.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace rondo::tuner {
namespace {

using algorithms::Algorithm;

// Sizes up to which the low-latency algorithm wins; measured with `./dev bench peers` on two cores
// (docs/performance.md).
struct Preference {
  Collective collective;
  std::uint64_t up_to;  // bytes
  std::int32_t most_ranks;
  std::string_view algorithm;
  std::optional<Paths> paths = std::nullopt;  // any
};
constexpr std::uint64_t any_size = std::numeric_limits<std::uint64_t>::max();
constexpr std::int32_t any_ranks = std::numeric_limits<std::int32_t>::max();
// The first row that fits and exists for the shape is taken.
constexpr Preference preferences[] = {
    {Collective::all_reduce, 65536, any_ranks, "recursive_doubling", Paths::wires},
    {Collective::all_reduce, 2048, 32, "one_shot"},
    {Collective::all_reduce, 16384, 2, "one_shot"},
    {Collective::all_reduce, 2048, any_ranks, "recursive_doubling"},
    {Collective::all_reduce, any_size, 16, "two_shot"},
    {Collective::all_reduce, any_size, any_ranks, "ring"},
    {Collective::all_gather, any_size, 16, "direct"},
    {Collective::all_gather, any_size, any_ranks, "ring"},
    {Collective::reduce_scatter, any_size, 16, "direct"},
    {Collective::reduce_scatter, any_size, any_ranks, "ring"},
    {Collective::broadcast, 16384, 16, "direct"},
    {Collective::broadcast, any_size, any_ranks, "chain"},
    {Collective::reduce, 16384, 16, "direct"},
    {Collective::reduce, any_size, any_ranks, "chain"},
    {Collective::barrier, any_size, 32, "one_shot"},
    {Collective::barrier, any_size, any_ranks, "recursive_doubling"},
};

template <class Wanted>
std::string names_of(Wanted&& wanted) {
  std::string names;
  for (const Algorithm& a : algorithms::all())
    if (wanted(a)) names += fmt::format("{}{}", names.empty() ? "" : ", ", a.name);
  return names;
}

std::string names_for(Collective collective) {
  return names_of([&](const Algorithm& a) { return a.collective == collective; });
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::configuration, fmt::format("RONDO_ALGO=\"{}\": {}", text, why),
              "write for example all_reduce:0-4k=one_shot,4k-inf=ring;broadcast:0-inf=chain");
}

bool usable(const Policy& policy, const Algorithm& a, const plan::Shape& shape) {
  const bool reduces = shape.collective == Collective::all_reduce || shape.collective == Collective::reduce ||
                       shape.collective == Collective::reduce_scatter;
  return a.supports(shape) && (!policy.deterministic || !reduces || a.rank_ordered);
}

std::string names_usable(const Policy& policy, const plan::Shape& shape) {
  return names_of([&](const Algorithm& a) { return a.collective == shape.collective && usable(policy, a, shape); });
}

}  // namespace

Collective even_form(Collective collective) {
  switch (collective) {
    case Collective::all_gather_v: return Collective::all_gather;
    case Collective::reduce_scatter_v: return Collective::reduce_scatter;
    case Collective::all_to_all_v: return Collective::all_to_all;
    case Collective::gather_v: return Collective::gather;
    case Collective::scatter_v: return Collective::scatter;
    default: return collective;
  }
}

std::vector<Pin> parse_pins(std::string_view text) {
  std::vector<Pin> pins;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const auto colon = part.find(':');
    if (colon == std::string_view::npos) refuse(text, fmt::format("\"{}\" has no ':' after the collective", part));
    Pin pin{};
    bool found = false;
    for (int c = 0; c < collective_count; ++c)
      if (name_of(static_cast<Collective>(c)) == part.substr(0, colon)) {
        pin.collective = static_cast<Collective>(c);
        found = true;
      }
    if (!found || names_for(pin.collective).empty())
      refuse(text, fmt::format("\"{}\" is no collective with algorithms", part.substr(0, colon)));
    std::string_view ranges = part.substr(colon + 1);
    if (ranges.empty()) refuse(text, fmt::format("\"{}\" names no range", part));
    while (!ranges.empty()) {
      const std::string_view range = ranges.substr(0, ranges.find(','));
      ranges.remove_prefix(std::min(ranges.size(), range.size() + 1));
      const auto equals = range.find('=');
      const auto dash = range.find('-');
      if (equals == std::string_view::npos || dash == std::string_view::npos || dash > equals)
        refuse(text, fmt::format("\"{}\" is not FROM-TO=ALGORITHM", range));
      const std::string_view to = range.substr(dash + 1, equals - dash - 1);
      const auto low = base::parse_bytes(range.substr(0, dash));
      const auto high = to == "inf" ? std::optional<std::uint64_t>(any_size) : base::parse_bytes(to);
      if (!low || !high || *low >= *high)
        refuse(text, fmt::format("\"{}\" is no range of sizes such as 0-4k or 4k-inf", range.substr(0, equals)));
      pin.from = *low;
      pin.to = *high;
      pin.algorithm = algorithms::find(pin.collective, range.substr(equals + 1));
      if (pin.algorithm == nullptr)
        refuse(text, fmt::format("{} has no algorithm \"{}\"; it has {}", name_of(pin.collective),
                                 range.substr(equals + 1), names_for(pin.collective)));
      pins.push_back(pin);
    }
  }
  return pins;
}

const Algorithm& choose(const Policy& policy, const plan::Shape& shape, std::uint64_t bytes, Paths paths) {
  for (const Pin& pin : policy.pins) {
    if (pin.collective != shape.collective || bytes < pin.from || (bytes >= pin.to && pin.to != any_size)) continue;
    if (!usable(policy, *pin.algorithm, shape))
      throw Error(ErrorCode::configuration,
                  fmt::format("RONDO_ALGO pins {} of {} bytes to {}, which {} for {} ranks", name_of(shape.collective),
                              bytes, pin.algorithm->name,
                              pin.algorithm->supports(shape) ? "is not deterministic" : "does not exist", shape.size),
                  fmt::format("use one of {}", names_usable(policy, shape)));
    return *pin.algorithm;
  }
  for (const Preference& p : preferences) {
    if (p.collective != shape.collective || bytes > p.up_to || shape.size > p.most_ranks) continue;
    if (p.paths.value_or(paths) != paths) continue;
    const Algorithm* a = algorithms::find(shape.collective, p.algorithm);
    if (a != nullptr && usable(policy, *a, shape)) return *a;
  }
  for (const Algorithm& a : algorithms::all())
    if (a.collective == shape.collective && usable(policy, a, shape)) return a;
  throw Error(ErrorCode::internal,
              fmt::format("no algorithm for {} on {} ranks", name_of(shape.collective), shape.size));
}

std::string explain(const Policy& policy, const plan::Shape& shape, std::uint64_t bytes, Paths paths) {
  const Algorithm& chosen = choose(policy, shape, bytes, paths);
  bool pinned = false;
  for (const Pin& pin : policy.pins)
    pinned =
        pinned || (pin.collective == shape.collective && bytes >= pin.from && (bytes < pin.to || pin.to == any_size));
  std::string text = fmt::format("{} of {} bytes on {} ranks:\n", name_of(shape.collective), bytes, shape.size);
  for (const Algorithm& a : algorithms::all()) {
    if (a.collective != shape.collective) continue;
    std::string why = &a == &chosen
                          ? (pinned ? "chosen: pinned by RONDO_ALGO" : "chosen: best for this size and rank count")
                      : !a.supports(shape)        ? "not for this shape"
                      : !usable(policy, a, shape) ? "not deterministic"
                                                  : "slower at this size and rank count";
    text +=
        fmt::format("  {:<20} {:10.2f} us predicted  {}\n", a.name,
                    a.supports(shape) ? a.cost(shape, static_cast<double>(bytes), plan::LinkCost{}) * 1e6 : 0.0, why);
  }
  return text;
}

}  // namespace rondo::tuner
