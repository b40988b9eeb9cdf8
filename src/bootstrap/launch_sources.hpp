// What launchers' variables say, before anything is done about it: the pure half of launch_environment.hpp.
//
// Recognised, in this order of preference for everything beyond rank and size:
//   rondo run   RONDO_RANK, RONDO_SIZE with RONDO_UNIQUE_ID, or with RONDO_ROOT when started by hand
//   torchrun    RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
//   Open MPI    OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
//   Slurm       SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS, within a step (srun)
// RONDO_UNIQUE_ID and RONDO_ROOT may stand beside any of them. Where several are present they must agree on rank and
// size, with two exceptions, in which the outer launcher started the inner one's daemons and says nothing of the ranks:
// Open MPI and Slurm outside torchrun's agent (TORCHELASTIC_RUN_ID is set), and Slurm outside mpirun.
#pragma once

#include "bootstrap/launch_environment.hpp"

#include <cstdint>
#include <string>

namespace rondo::bootstrap {

struct LaunchDescription {
  std::string source;
  int rank = 0;
  int size = 1;
  std::string unique_id;  // RONDO_UNIQUE_ID; if given, the rest is of no interest
  // Where rank 0 hosts the rendezvous.
  std::string root_host;
  std::uint16_t root_port = 0;
  // Tells this job's key from those of other jobs with the same secret.
  std::string job;
  bool single_host = false;
};

// Throws as read_launch_environment() does, except about keys.
LaunchDescription describe_launch(const Lookup& lookup);

// torchrun's agent listens on MASTER_PORT itself, so rank 0 takes the port after it; 65535 is followed by 1024.
std::uint16_t port_beside(std::uint16_t master_port);
// A port from 20000 to 29999 that all processes of a job compute alike.
std::uint16_t port_of_job(std::string_view job);

}  // namespace rondo::bootstrap
