// A hook for tests: changes a rank's plan after its generator made it and before it is bound. With it a test corrupts
// the plan that a communicator really runs, and shows that nothing bypasses plans.
//
// Empty by default. Set it only while no communicator exists: it is read without a lock, and called by any rank's
// thread.
#pragma once

#include "plan/plan.hpp"

#include <functional>

namespace rondo::executor {

inline std::function<void(plan::RankPlan&)>& plan_interceptor() {
  static std::function<void(plan::RankPlan&)> interceptor;
  return interceptor;
}

}  // namespace rondo::executor
