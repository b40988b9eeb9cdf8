// How process groups end: closing a communicator waits for the goodbyes of all ranks, but torch destroys groups in
// whatever order the garbage collector finds them. So each goodbye is said on a thread of its own.
#pragma once

#include "work.hpp"

#include <rondo/communicator.hpp>

#include <chrono>
#include <memory>

namespace rondo_torch {

// Closes, ends the completions, and waits up to `patience` for that; afterwards it goes on alone.
void say_farewell(std::shared_ptr<rondo::Communicator> communicator, std::unique_ptr<Completions> completions,
                  std::chrono::milliseconds patience) noexcept;
// For those that still go on, before the process ends. False if some still do.
bool wait_for_farewells(std::chrono::milliseconds patience);

}  // namespace rondo_torch
