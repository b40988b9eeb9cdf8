// How the engine explains what goes wrong: inquiries among ranks, mismatches, deadlines, failed ranks.
//
// A rank whose operation waits for 20 ms floods an inquiry with its latest signatures, and again at growing intervals:
// earlier ones too, since operations that differ may have ended on both sides (two roots that only sent).
// Everybody who holds another signature under the same number floods the verdict, which poisons the communicator on all
// ranks; everybody else answers where he is, so that a deadline can say who is missing.
#include "base/bytes.hpp"
#include "base/log.hpp"
#include "engine/engine.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace rondo::engine {
namespace {

enum MessageType : std::uint32_t { inquiry = 1, status = 2, verdict = 3 };

constexpr std::uint64_t signatures_an_inquiry = 32;
constexpr std::size_t most_early_verdicts = 256;

void put(base::ByteWriter& out, const Signature& s) {
  out.put(s.sequence).put(s.collective).put(s.type).put(s.op).put(s.root).put(s.count).put(s.table);
}
Signature get_signature(base::ByteReader& in) {
  Signature s;
  s.sequence = in.get<std::uint64_t>();
  s.collective = in.get<Collective>();
  s.type = in.get<DataType>();
  s.op = in.get<ReduceOp>();
  s.root = in.get<std::int32_t>();
  s.count = in.get<std::uint64_t>();
  s.table = in.get<std::uint64_t>();
  return s;
}

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
  base::ByteWriter out;
  out.put(error.code()).put(static_cast<std::int32_t>(error.peer()));
  out.put_string(error.message()).put_string(error.hint());
  // Claimed before it is told: a peer that ends because of it must not count here as the reason.
  if (!communicator.claim(error)) return;
  // Told before it shows here: a caller that the poison lets go may leave the tree at once, and that news must not
  // overtake the reason.
  try {
    parts_.tree->flood(verdict, communicator.context, out.bytes());
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
  std::vector<Signature> signatures;              // oldest first, so that the first difference is named
  for (std::uint64_t n = last > signatures_an_inquiry ? last - signatures_an_inquiry + 1 : 1; n <= last; ++n)
    if (const auto record = communicator.recorder.find(n)) signatures.push_back(record->signature);
  base::ByteWriter out;
  out.put(static_cast<std::uint32_t>(signatures.size()));
  for (const Signature& signature : signatures) put(out, signature);
  parts_.tree->flood(inquiry, communicator.context, out.bytes());
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
    base::ByteReader in(message.payload);
    if (message.type == inquiry) {
      const auto count = in.get<std::uint32_t>();
      for (std::uint32_t i = 0; i < count && i < signatures_an_inquiry; ++i) {
        const Signature theirs = get_signature(in);
        const auto mine = communicator->recorder.find(theirs.sequence);
        if (!mine || mine->signature == theirs) continue;
        fail(
            *communicator,
            Error(ErrorCode::mismatch,
                  fmt::format("ranks of {} disagree on collective #{}: rank {} called {}, rank {} called {}",
                              communicator->name, theirs.sequence, communicator->rank,
                              engine::describe(mine->signature), source, engine::describe(theirs)),
                  "every rank must call the same collectives in the same order with the same count, type, operator and "
                  "root",
                  message.source));
        return;
      }
      base::ByteWriter out;
      const std::uint64_t last = communicator->recorder.last();
      const auto record = communicator->recorder.find(last);
      out.put(last).put<std::uint8_t>(record && record->state == RecordState::running ? 1 : 0);
      out.put_string(communicator->progress());
      parts_.tree->send(message.source, status, message.context, out.bytes());
    } else if (message.type == status) {
      PeerStatus peer;
      peer.last_called = in.get<std::uint64_t>();
      peer.running = in.get<std::uint8_t>() != 0;
      const auto text = in.get_string();
      peer.text = std::string(text);
      peer.heard = parts_.system->now();
      communicator->heard_from(source, std::move(peer));
    } else if (message.type == verdict) {
      const auto code = in.get<ErrorCode>();
      const auto peer = in.get<std::int32_t>();
      const std::string text(in.get_string());
      const std::string hint(in.get_string());
      poison_locally(*communicator, Error(code, text, hint, peer));
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
        text += fmt::format("; rank {} has not called it (its last was #{})", r, it->second.last_called);
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
