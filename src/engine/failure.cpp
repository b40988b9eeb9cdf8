// How the engine explains what goes wrong: inquiries among ranks, mismatches, deadlines, failed ranks.
//
// A rank whose operation waits for 20 ms asks all others, with its latest signatures, and again at growing intervals:
// earlier ones too, since operations that differ may have ended on both sides (two roots that only sent).
// Everybody who can prove a mismatch from that (judgement.hpp) floods the verdict, which poisons the communicator on
// all ranks; everybody else answers where he is, so that a deadline can say who is missing.
#include "base/log.hpp"
#include "engine/engine.hpp"
#include "engine/judgement.hpp"
#include "engine/messages.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace rondo::engine {
namespace {

constexpr auto inquiry = static_cast<std::uint32_t>(MessageType::inquiry);
constexpr auto status = static_cast<std::uint32_t>(MessageType::status);
constexpr auto verdict = static_cast<std::uint32_t>(MessageType::verdict);
constexpr std::size_t most_early_verdicts = 256;

}  // namespace

std::shared_ptr<CommunicatorState> Engine::find(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  const auto it = communicators_.find(context);
  return it == communicators_.end() ? nullptr : it->second.lock();
}

bool Engine::poison_locally(CommunicatorState& communicator, const Error& error) {
  if (!communicator.claim(error)) return false;
  publish(communicator);
  return true;
}

void Engine::publish(CommunicatorState& communicator) {
  communicator.publish();
  base::log(base::LogLevel::info, base::Subsystem::engine, "communicator {} failed: {}", communicator.name,
            communicator.error().what());
  base::ring(*parts_.bell, *parts_.system);
  wake_worker();
}

void Engine::fail(CommunicatorState& communicator, const Error& error) {
  // Claimed before it is told: a peer that ends because of it must not count here as the reason.
  if (!communicator.claim(error)) return;
  // Told before it shows here: a caller that the poison lets go may leave the tree at once, and that news must not
  // overtake the reason.
  try {
    parts_.tree->flood(verdict, communicator.context, encode_verdict(error));
  } catch (...) {
    publish(communicator);
    throw;
  }
  publish(communicator);
}

void Engine::inquire(Operation& operation) {
  CommunicatorState& communicator = operation.communicator();
  const std::uint64_t last = operation.sequence();
  if (!communicator.recorder.find(last)) return;  // point-to-point: nothing to compare
  Inquiry question;
  const std::uint64_t first = last > Inquiry::most_signatures ? last - Inquiry::most_signatures + 1 : 1;
  for (std::uint64_t n = first; n <= last; ++n)  // oldest first, so that the first difference is named
    if (const auto record = communicator.recorder.find(n)) question.signatures.push_back(record->signature);
  question.blocked = communicator.latest_wait() >= last;
  question.exchanges = communicator.exchanges.begun();
  const auto is_old = [&](const PairCount& pair) { return pair.sequence < first || pair.sequence > last; };
  if (communicator.pair_counts.empty()) {
    parts_.tree->flood(inquiry, communicator.context, encode(question));
    return;
  }
  for (int peer = 0; peer < static_cast<int>(communicator.members.size()); ++peer) {
    if (peer == communicator.rank) continue;
    question.pairs = communicator.pair_counts.with(peer);
    std::erase_if(question.pairs, is_old);
    parts_.tree->send(communicator.members[static_cast<std::size_t>(peer)], inquiry, communicator.context,
                      encode(question));
  }
}

// A peer may have failed a communicator before this rank has made its own half of it: the verdict is told only once, so
// it waits for add(). False if the communicator has come meanwhile.
bool Engine::keep_for_later(const bootstrap::ControlMessage& message) {
  if (message.type != verdict) return true;  // inquiries are repeated
  const std::lock_guard lock(mutex_);
  const auto it = communicators_.find(message.context);
  if (it != communicators_.end() && !it->second.expired()) return false;
  early_verdicts_.push_back(message);
  // Communicators that this rank is no part of, or has closed, leave theirs behind.
  if (early_verdicts_.size() > most_early_verdicts) early_verdicts_.pop_front();
  return true;
}

void Engine::on_message(const bootstrap::ControlMessage& message) {
  const auto communicator = find(message.context);
  if (communicator == nullptr) {
    if (!keep_for_later(message)) on_message(message);
    return;
  }
  const int source = communicator->rank_of_world(message.source);
  if (source < 0) return;
  try {
    if (message.type == inquiry) {
      const Inquiry theirs = decode_inquiry(message.payload);
      if (const auto mismatch = judge(*communicator, source, theirs, parts_.system->now())) {
        fail(*communicator, *mismatch);
        return;
      }
      StatusMessage own;
      own.last_called = communicator->recorder.last();
      const auto record = communicator->recorder.find(own.last_called);
      own.running = record && record->state == RecordState::running;
      own.progress = communicator->progress();
      own.exchange = current_exchange(*communicator);
      parts_.tree->send(message.source, status, message.context, encode(own));
    } else if (message.type == status) {
      StatusMessage theirs = decode_status(message.payload);
      PeerStatus peer;
      peer.last_called = theirs.last_called;
      peer.running = theirs.running;
      peer.text = std::move(theirs.progress);
      peer.exchange = std::move(theirs.exchange);
      peer.heard = parts_.system->now();
      communicator->heard_from(source, std::move(peer));
    } else if (message.type == verdict) {
      poison_locally(*communicator, decode_verdict(message.payload));
    }
  } catch (const Error& error) {
    base::log(base::LogLevel::warn, base::Subsystem::engine,
              "a control message of type {} from rank {} is malformed: {}", message.type, message.source, error.what());
  }
}

void Engine::on_rank_failed(int world_rank, const std::string& why) {
  std::vector<std::shared_ptr<CommunicatorState>> concerned;
  {
    const std::lock_guard lock(mutex_);
    failed_ranks_.emplace(world_rank, why);
    for (const auto& [context, weak] : communicators_)
      if (auto communicator = weak.lock(); communicator && communicator->rank_of_world(world_rank) >= 0)
        concerned.push_back(std::move(communicator));
  }
  for (const auto& communicator : concerned)
    poison_locally(*communicator,
                   Error(ErrorCode::rank_failed, why, "see that rank's own output for its reason", world_rank));
}

// Of `communicator`, or of another: that one is why this rank does not come.
std::string Engine::current_exchange(const CommunicatorState& communicator) {
  if (const auto exchange = communicator.exchanges.current()) return exchange->call;
  const std::lock_guard lock(mutex_);
  for (const auto& [context, weak] : communicators_) {
    const auto other = weak.lock();
    if (other == nullptr) continue;
    if (const auto exchange = other->exchanges.current()) return fmt::format("{} of {}", exchange->call, other->name);
  }
  return {};
}

Error Engine::deadline_error(Operation& operation) {
  CommunicatorState& communicator = operation.communicator();
  std::string text =
      fmt::format("{} on {} did not finish within {:.3g} s: rank {} is in {}", operation.describe(), communicator.name,
                  static_cast<double>(operation.timing.limit) / 1e9, communicator.rank, operation.progress());
  if (operation.sequence() != 0) {
    const auto statuses = communicator.statuses();
    for (int r = 0; r < static_cast<int>(communicator.members.size()); ++r) {
      if (r == communicator.rank) continue;
      const auto it = statuses.find(r);
      if (it == statuses.end()) {
        text += fmt::format("; rank {} gave no answer", r);
      } else if (it->second.last_called < operation.sequence()) {
        const std::string& exchange = it->second.exchange;
        text += fmt::format("; rank {} has not called it (its last was #{}{})", r, it->second.last_called,
                            exchange.empty() ? "" : ", and it is in " + exchange);
      } else if (it->second.last_called == operation.sequence() && it->second.running) {
        text += fmt::format("; rank {} is in {}", r, it->second.text.empty() ? "it" : it->second.text);
      }
    }
  }
  return Error(ErrorCode::deadline, text,
               "a rank that has not called it is busy elsewhere or waits for something else; raise the deadline with "
               "CallOptions::deadline or RONDO_DEADLINE if it is only slow");
}

}  // namespace rondo::engine
