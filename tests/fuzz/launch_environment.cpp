// Launchers' environments, as "NAME=value" lines.
#include "bootstrap/launch_sources.hpp"

#include "harness/target.hpp"

namespace rondo::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (const char* text :
       {"RONDO_RANK=0\nRONDO_SIZE=4\nRONDO_ROOT=10.0.0.1:29555", "RONDO_RANK=3\nRONDO_SIZE=4\nRONDO_ROOT=[::1]:29555",
        "RONDO_RANK=1\nRONDO_SIZE=2\nRONDO_UNIQUE_ID=00ff",
        "RANK=1\nWORLD_SIZE=2\nMASTER_ADDR=localhost\nMASTER_PORT=65535\nTORCHELASTIC_RUN_ID=none\nLOCAL_WORLD_SIZE=2",
        "OMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_LOCAL_SIZE=2\nPMIX_NAMESPACE=prterun-1@1",
        "OMPI_COMM_WORLD_RANK=0\nOMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_LOCAL_SIZE=2\nOMPI_MCA_ess_base_jobid=17",
        "SLURM_PROCID=0\nSLURM_STEP_NUM_TASKS=2\nSLURM_STEP_ID=0\nSLURM_STEP_NODELIST=n[1-2,07]\nSLURM_JOB_ID=5",
        "SLURM_PROCID=0\nSLURM_NTASKS=2\nSLURM_STEP_ID=0\nSLURM_JOB_NODELIST=n1\nSLURM_JOB_ID=5"}) {
    inputs.push_back(bytes_of(text));
  }
  return inputs;
}

bool parse(std::span<const std::byte> input) {
  const auto variables = environment_of(input);
  return accepts(
      [&] {
        const auto d = bootstrap::describe_launch(lookup_in(variables));
        require(!d.source.empty() && d.size >= 1 && d.rank >= 0 && d.rank < d.size, "a rank is below the size");
        if (!d.unique_id.empty()) return;
        require(!d.root_host.empty() && d.root_port != 0 && !d.job.empty(), "rank 0 is somewhere");
        const std::map<std::string, std::string> by_hand = {
            {"RONDO_RANK", std::to_string(d.rank)},
            {"RONDO_SIZE", std::to_string(d.size)},
            {"RONDO_ROOT", "[" + d.root_host + "]:" + std::to_string(d.root_port)}};
        const auto again = bootstrap::describe_launch(lookup_in(by_hand));
        require(again.rank == d.rank && again.size == d.size, "said by hand, rank and size are the same");
        require(again.root_host == d.root_host && again.root_port == d.root_port, "said by hand, rank 0 is the same");
      },
      {ErrorCode::configuration});
}

}  // namespace rondo::fuzz
