// The library's descriptors in forked children: a child that kept them open would keep its dead parent's connections
// alive, and no peer would see that the parent is gone.
//
// A process-wide set of descriptor numbers, lock-free: one bit each. Any thread; close_in_forked_children() once before
// the first fork that matters. A descriptor opened while another thread forks may be missed by that child.
#pragma once

namespace rondo::base {

// Says that the library owns `fd`, or no longer does. forget_descriptor() is false when a forked child has closed it
// already: then the number may be somebody else's by now and must not be closed again.
void own_descriptor(int fd);
bool forget_descriptor(int fd);

// From now on every forked child closes all owned descriptors and then calls `in_child`, which must be
// async-signal-safe. The first call counts. Children that exec() need none of this: the descriptors close there.
void close_in_forked_children(void (*in_child)());

}  // namespace rondo::base
