// Making worlds: joining over the network, from a launcher's environment, or as threads of one process.
#pragma once

#include <rondo/config.hpp>
#include <rondo/unique_id.hpp>

#include "communicator/implementation.hpp"

#include <memory>
#include <vector>

namespace rondo::communicator {

std::shared_ptr<Implementation> join_world(const UniqueId& id, int rank, int size, const Config& config);
std::shared_ptr<Implementation> join_from_environment(const Config& config);
// One entry a rank; each rank is for one thread.
std::vector<std::shared_ptr<Implementation>> make_local_world(int size, const Config& config);

// A forked child has none of the parent's threads: it must not use its communicators. Throws Error(invalid_usage)
// there.
void refuse_forked_child();
bool is_forked_child();
// Keeps an object for ever: in a forked child, where destroying it would wait for threads that do not exist.
void leak(std::shared_ptr<Implementation> implementation);

}  // namespace rondo::communicator
