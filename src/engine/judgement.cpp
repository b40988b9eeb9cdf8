#include "engine/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace rondo::engine {
namespace {

constexpr base::Nanoseconds time_for_other_threads = 500'000'000;

int world_rank(const CommunicatorState& communicator, int rank) {
  return communicator.members[static_cast<std::size_t>(rank)];
}

std::optional<Error> judge_signatures(const CommunicatorState& mine, int source, const Inquiry& theirs) {
  for (const Signature& signature : theirs.signatures) {
    const auto record = mine.recorder.find(signature.sequence);
    if (!record || record->signature == signature) continue;
    return Error(ErrorCode::mismatch,
                 fmt::format("ranks of {} disagree on collective #{}: rank {} called {}, rank {} called {}", mine.name,
                             signature.sequence, mine.rank, describe(record->signature), source, describe(signature)),
                 "every rank must call the same collectives in the same order with the same count, type, operator and "
                 "root",
                 world_rank(mine, source));
  }
  return std::nullopt;
}

std::string describe_pair(int from, std::uint64_t sent, int to, std::uint64_t received) {
  return fmt::format("rank {} called it to send {} elements to rank {}, rank {} called it to receive {} from rank {}",
                     from, sent, to, to, received, from);
}

std::optional<Error> judge_pairs(const CommunicatorState& mine, int source, const Inquiry& theirs) {
  const std::vector<PairCount> ours = mine.pair_counts.with(source);
  for (const PairCount& their : theirs.pairs) {
    const auto our =
        std::find_if(ours.begin(), ours.end(), [&](const PairCount& pair) { return pair.sequence == their.sequence; });
    const auto record = mine.recorder.find(their.sequence);
    if (our == ours.end() || !record) continue;
    std::string text;
    if (our->sends != their.receives) text = describe_pair(mine.rank, our->sends, source, their.receives);
    else if (their.sends != our->receives) text = describe_pair(source, their.sends, mine.rank, our->receives);
    else continue;
    return Error(ErrorCode::mismatch,
                 fmt::format("ranks of {} disagree on {}: {}", mine.name, describe(record->signature), text),
                 "what a rank sends to a peer must be what that peer receives from it", world_rank(mine, source));
  }
  return std::nullopt;
}

std::optional<Error> judge_exchange(const CommunicatorState& mine, int source, const Inquiry& theirs,
                                    base::Nanoseconds now) {
  const auto exchange = mine.exchanges.current();
  const std::uint64_t last = mine.recorder.last();
  if (!exchange || !theirs.blocked || exchange->number <= theirs.exchanges ||
      now - exchange->began < time_for_other_threads)
    return std::nullopt;
  const auto missing = std::find_if(theirs.signatures.begin(), theirs.signatures.end(),
                                    [last](const Signature& signature) { return signature.sequence > last; });
  if (missing == theirs.signatures.end()) return std::nullopt;
  return Error(ErrorCode::mismatch,
               fmt::format("ranks of {} disagree: rank {} called {}, rank {} called {} after {}", mine.name, source,
                           describe(*missing), mine.rank, exchange->call,
                           last == 0 ? "no collective" : fmt::format("collective #{}", last)),
               "split, allocate and close have the same place among the collectives on every rank; a communicator that "
               "is destroyed calls close",
               world_rank(mine, source));
}

}  // namespace

std::optional<Error> judge(const CommunicatorState& mine, int source, const Inquiry& theirs, base::Nanoseconds now) {
  if (auto error = judge_signatures(mine, source, theirs)) return error;
  if (auto error = judge_pairs(mine, source, theirs)) return error;
  return judge_exchange(mine, source, theirs, now);
}

}  // namespace rondo::engine
