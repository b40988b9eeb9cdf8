// The flight record as JSON: docs/flight-recorder.md describes it.
#include "base/log.hpp"
#include "communicator/implementation.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace rondo::communicator {
namespace {

std::string_view name_of(engine::RecordState state) {
  switch (state) {
    case engine::RecordState::running: return "running";
    case engine::RecordState::completed: return "completed";
    case engine::RecordState::failed: break;
  }
  return "failed";
}

}  // namespace

void Implementation::write_flight_record() noexcept {
  if (world_->settings.flight_record.empty() || record_written_.exchange(true, std::memory_order_relaxed)) return;
  try {
    const std::string path = base::expand_file_pattern("RONDO_FLIGHT_RECORD", world_->settings.flight_record);
    std::ofstream file(path, std::ios::trunc);
    file << flight_record();
    if (!file.flush())
      base::log(base::LogLevel::warn, base::Subsystem::engine, "the flight record could not be written to {}", path);
  } catch (const std::exception& error) {
    base::log(base::LogLevel::warn, base::Subsystem::engine, "the flight record: {}", error.what());
  }
}

std::string Implementation::flight_record() const {
  nlohmann::ordered_json json;
  json["communicator"] = state_->name;
  json["rank"] = state_->rank;
  json["size"] = state_->members.size();
  json["context"] = fmt::format("{:016x}", state_->context);
  json["error"] = nullptr;
  if (state_->poisoned()) json["error"] = state_->error().what();
  json["operations"] = nlohmann::ordered_json::array();
  for (const engine::Record& r : state_->recorder.all())
    json["operations"].push_back({{"sequence", r.signature.sequence},
                                  {"collective", rondo::name_of(r.signature.collective)},
                                  {"count", r.signature.count},
                                  {"type", rondo::name_of(r.signature.type)},
                                  {"op", rondo::name_of(r.signature.op)},
                                  {"root", r.signature.root},
                                  {"state", name_of(r.state)},
                                  {"began_ticks", r.began},
                                  {"ended_ticks", r.ended}});
  json["peers"] = nlohmann::ordered_json::array();
  for (const auto& [peer, status] : state_->statuses())
    json["peers"].push_back({{"rank", peer}, {"last_called", status.last_called}, {"running", status.running}});
  // Names and reasons are the user's: any byte may be in them.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace rondo::communicator
