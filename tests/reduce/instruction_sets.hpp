// The kernels of every instruction set that this machine can run, by restricting Highway's choice.
#pragma once

#include "executor/reduce/targets.hpp"
//
#include <hwy/highway.h>

#include <string>
#include <vector>

#include "executor/reduce/kernel_table.hpp"

namespace rondo::executor {

struct InstructionSet {
  std::string name;
  KernelTable table;
  StreamCopy stream_copy;
};

inline const std::vector<InstructionSet>& instruction_sets() {
  static const std::vector<InstructionSet> all = [] {
    std::vector<InstructionSet> sets;
    const auto supported = hwy::SupportedTargets();
    for (const auto target : {HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_NEON, HWY_SCALAR}) {
      if (target != HWY_SCALAR && (supported & target) == 0) continue;
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      sets.push_back({instruction_set(), make_kernel_table(), stream_copy()});
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return sets;
  }();
  return all;
}

}  // namespace rondo::executor
