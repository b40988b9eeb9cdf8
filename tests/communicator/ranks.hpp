// Ranks of a test: threads of one process that share one mapping, so that ThreadSanitizer sees every access.
#pragma once

#include <rondo/rondo.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rondo {

// A failed expectation must not hang the others for the default of ten minutes.
inline Config test_config() {
  Config config;
  config.deadline = std::chrono::seconds(60);
  return config;
}

inline Config pinned(const std::string& algorithm) {
  Config config = test_config();
  config.algorithm = algorithm;
  return config;
}

// Runs `body` on one thread a rank; every communicator is closed (or aborted, if body throws) by its own thread. An
// exception that leaves body fails the test.
template <class Body>
void with_ranks(int size, Body body, const Config& config = test_config()) {
  std::vector<Communicator> ranks = Communicator::create_local(size, config);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        Communicator comm = std::move(ranks[static_cast<std::size_t>(r)]);
        body(comm);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << r << ": " << error.what();
      }
    });
  for (std::thread& t : threads) t.join();
}

// The code of the rondo::Error that `call` throws; fails the test if it throws none. `text` takes what().
template <class Call>
ErrorCode code_of(Call&& call, std::string* text = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  ADD_FAILURE() << "no rondo::Error was thrown";
  return ErrorCode::internal;
}

}  // namespace rondo
