// LocalLink: a control edge between two ranks of one process (Communicator::create_local): two queues of frames.
//
// As every ControlLink: send() from any thread, the rest from the service thread. `wake` wakes the receiver's service
// thread.
#pragma once

#include "bootstrap/control_link.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace rondo::bootstrap {

std::pair<std::unique_ptr<ControlLink>, std::unique_ptr<ControlLink>> make_local_links(
    std::function<void()> wake_first, std::function<void()> wake_second);

}  // namespace rondo::bootstrap
