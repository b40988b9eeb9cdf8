// FiberStack: memory for one fiber's stack, with a guard page below it. FiberStackPool: stacks to use again.
//
// Stacks are mapped once and lent out; a program that runs thousands of simulations would otherwise map and unmap all
// the time. One thread. Errors: Error(system) when there is no memory.
#pragma once

#include <cstddef>
#include <vector>

namespace rondo::transport::sim {

class FiberStack {
 public:
  FiberStack();
  FiberStack(FiberStack&& other) noexcept;
  FiberStack& operator=(FiberStack&& other) noexcept;
  ~FiberStack();
  std::byte* bottom() const;
  static std::size_t bytes();

 private:
  std::byte* memory_ = nullptr;  // the guard page comes first
};

class FiberStackPool {
 public:
  FiberStack take();
  void give_back(FiberStack stack) { idle_.push_back(std::move(stack)); }

 private:
  std::vector<FiberStack> idle_;
};

}  // namespace rondo::transport::sim
