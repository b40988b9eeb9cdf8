// rondo::Error: the one exception the library throws. It says what failed, who, why, and what to try.
#pragma once

#include <rondo/export.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rondo {

enum class ErrorCode : std::uint8_t {
  invalid_argument,  // a value the call cannot accept; the communicator stays usable
  invalid_usage,     // a call in the wrong place (closed communicator, forked child, nested group ...)
  mismatch,          // ranks called different operations, or with different arguments
  deadline,          // an operation or the joining did not finish in time
  rank_failed,       // a rank died, left without saying goodbye, or fell silent
  aborted,           // somebody called abort()
  authentication,    // a connection did not prove knowledge of the key
  system,            // an operating-system call failed; the text carries the call and errno
  transport,         // a path to a peer broke, or failed its verification
  plan,              // a plan was refused by the checker
  configuration,     // an environment variable or a Config field is malformed or differs between ranks
  internal,          // a bug in the library
};

RONDO_API std::string_view name_of(ErrorCode code);

class RONDO_API Error : public std::runtime_error {
 public:
  // `message` states the value, the constraint and a value that works; `hint` what to try (may be empty). what() is
  // "message (hint)". `peer` is the world rank that the error is about, or -1.
  Error(ErrorCode code, std::string message, std::string hint = {}, int peer = -1);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;

  ErrorCode code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& hint() const noexcept { return hint_; }
  int peer() const noexcept { return peer_; }

 private:
  ErrorCode code_;
  int peer_;
  std::string message_;
  std::string hint_;
};

}  // namespace rondo
