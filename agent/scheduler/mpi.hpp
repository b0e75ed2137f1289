/// What Open MPI's and Hydra's launchers have in common: they tell size and rank, but no hosts.
#pragma once

#include "agent/scheduler/facts.hpp"

namespace tensorplay::agent {

struct MpiTask {
  std::string name;   ///< As --scheduler has it.
  std::string title;  ///< For people: "Open MPI job 749076481".
  std::string job;    ///< What names this start of the job; empty where the launcher does not tell.
  int size = 1;
  int rank = 0;
  int local_size = 1;
  std::string head;    ///< A host that the launcher itself names; may be empty.
  std::string remedy;  ///< For several tasks on one node.
};

/// Hosts and job id are taken from the batch scheduler around it, else from MASTER_ADDR (mpirun -x MASTER_ADDR) or the
/// launcher's own host. Throws UsageError where nothing tells where to meet. nullopt when SLURM's srun says the same:
/// then it is srun that speaks PMI.
std::optional<SchedulerFacts> read_mpi_task(const Surroundings& around, const MpiTask& task);

}  // namespace tensorplay::agent
