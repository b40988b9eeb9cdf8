// What a link costs: the parameters of closed forms and of the simulator.
#pragma once

namespace rondo::plan {

struct LinkCost {
  double alpha = 1e-6;   // seconds a message
  double beta = 1e-10;   // seconds a byte on the wire
  double gamma = 1e-10;  // seconds a reduced byte
};

}  // namespace rondo::plan
