// One seed: a random world, a random collective, perhaps a kill; and the judgement of what came of it.
#pragma once

#include "sim/sim_world.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace rondo::testing {

enum class Phase : std::uint8_t { none, joined, running, between, closing };
inline constexpr std::array<const char*, 5> phase_names = {"none", "joined", "running", "between", "closing"};

struct SeedOptions {
  bool kills = true;
  std::shared_ptr<sim::FiberStackPool> stacks;
  // A fixed choice instead of the seed's.
  const algorithms::Algorithm* algorithm = nullptr;
  // Planted bugs: the n-th wake-up of a doorbell is lost; the n-th credit between hosts is lost. 0: none.
  std::uint64_t lose_wake = 0;
  std::uint64_t lose_credit = 0;
};

struct SeedResult {
  std::uint64_t seed = 0;
  std::string scenario;   // for people
  std::string algorithm;  // "all_reduce/ring"
  int ranks = 0;
  int hosts = 0;
  Phase phase = Phase::none;  // of the kill that happened
  int victim = -1;
  bool all_right = false;             // every rank that was not killed ended with right values and without an error
  std::map<std::string, int> errors;  // of survivors, by code
  std::string failure;                // what is wrong with the library; empty: nothing
  std::uint64_t trace_hash = 0;
  std::uint64_t turns = 0;
  Nanoseconds longest_operation = 0;  // virtual
};

SeedResult run_seed(std::uint64_t seed, const SeedOptions& options);

}  // namespace rondo::testing
