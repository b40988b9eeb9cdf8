#include <rondo/error.hpp>

#include <utility>

namespace rondo {
namespace {

std::string text_of(const std::string& message, const std::string& hint) {
  return hint.empty() ? message : message + " (" + hint + ")";
}

}  // namespace

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::invalid_usage: return "invalid_usage";
    case ErrorCode::mismatch: return "mismatch";
    case ErrorCode::deadline: return "deadline";
    case ErrorCode::rank_failed: return "rank_failed";
    case ErrorCode::aborted: return "aborted";
    case ErrorCode::authentication: return "authentication";
    case ErrorCode::system: return "system";
    case ErrorCode::transport: return "transport";
    case ErrorCode::plan: return "plan";
    case ErrorCode::configuration: return "configuration";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string message, std::string hint, int peer)
    : std::runtime_error(text_of(message, hint)),
      code_(code),
      peer_(peer),
      message_(std::move(message)),
      hint_(std::move(hint)) {}

Error::~Error() = default;

}  // namespace rondo
