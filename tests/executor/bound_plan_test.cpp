// What is refused when a plan meets its connections.
#include <string>
#include <vector>

#include "communicator/ranks.hpp"
#include "executor/cpu/plan_interceptor.hpp"

namespace rondo {
namespace {

TEST(BoundPlan, ThatNeedsMoreSlotsThanItsConnectionsHaveIsRefused) {
  executor::plan_interceptor() = [](plan::RankPlan& plan) {
    for (plan::Connection& c : plan.connections) c.slots_min = 5;  // times two slices: more than the eight there are
  };
  with_ranks(2, [&](Communicator& comm) {
    std::vector<float> data(10, 1.0F);
    std::string text;
    EXPECT_EQ(code_of([&] { comm.all_reduce(std::span(data)); }, &text), ErrorCode::plan);
    EXPECT_NE(text.find("needs 10 slots"), std::string::npos) << text;
  });
  executor::plan_interceptor() = nullptr;
}

}  // namespace
}  // namespace rondo
