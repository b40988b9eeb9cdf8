#include "engine/signature.hpp"

#include <fmt/format.h>

namespace rondo::engine {
namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  h = (h ^ value) * 0x9E3779B97F4A7C15ULL;
  return h ^ (h >> 29);
}
bool reduces(Collective c) {
  return c == Collective::all_reduce || c == Collective::reduce || c == Collective::reduce_scatter ||
         c == Collective::reduce_scatter_v;
}

}  // namespace

bool counts_are_local(Collective c) {
  return c == Collective::all_to_all_v || c == Collective::gather_v || c == Collective::scatter_v;
}

std::uint64_t hash_of_kind(const Signature& s) {
  std::uint64_t h = mix(0x526F6E646FULL, static_cast<std::uint64_t>(s.collective));
  h = mix(h, static_cast<std::uint64_t>(s.type));
  h = mix(h, static_cast<std::uint64_t>(s.op));
  h = mix(h, static_cast<std::uint64_t>(static_cast<std::int64_t>(s.root)));
  h = mix(h, s.count);
  return mix(h, s.table);
}

std::string describe(const Signature& s) {
  if (s.collective == Collective::barrier) return fmt::format("barrier #{}", s.sequence);
  std::string text = fmt::format("{} #{} (", name_of(s.collective), s.sequence);
  if (counts_are_local(s.collective)) text += fmt::format("{}", name_of(s.type));
  else if (s.collective == Collective::all_gather_v || s.collective == Collective::reduce_scatter_v)
    text += fmt::format("counts with hash {:x}, {}", s.count, name_of(s.type));
  else text += fmt::format("{} x {}", s.count, name_of(s.type));
  if (reduces(s.collective)) text += fmt::format(", {}", name_of(s.op));
  if (s.root >= 0) text += fmt::format(", root {}", s.root);
  return text + ")";
}

}  // namespace rondo::engine
