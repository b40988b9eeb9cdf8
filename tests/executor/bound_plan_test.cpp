// What is refused when a plan meets its connections.
#include <string>
#include <vector>

#include "communicator/ranks.hpp"
#include "executor/cpu/plan_interceptor.hpp"

namespace rondo {
namespace {

// The eight slots of a connection are enough for five messages, not for five times two slices.
TEST(BoundPlan, ThatNeedsMoreSlotsThanItsConnectionsHaveIsRefused) {
  executor::plan_interceptor() = [](plan::RankPlan& plan) {
    for (plan::Connection& c : plan.connections) c.slots_min = 5;
  };
  with_ranks(2, [&](Communicator& comm) {
    std::vector<float> small(10, 1.0F), large(1 << 20, 1.0F);
    std::string text;
    EXPECT_EQ(code_of([&] { comm.all_reduce(std::span(large)); }, &text), ErrorCode::plan);
    EXPECT_NE(text.find("needs 10 slots"), std::string::npos) << text;
    comm.all_reduce(std::span(small));
    EXPECT_EQ(small, std::vector<float>(10, 2.0F));
  });
  executor::plan_interceptor() = nullptr;
}

}  // namespace
}  // namespace rondo
