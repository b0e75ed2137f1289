// Hydra (MPICH, Intel MPI, MVAPICH) and launchers with its variables: `mpiexec -ppn 1 tprun ...`. Its job has no name
// and no hosts in the environment: a batch scheduler around it must tell them.
#include "agent/scheduler/allocation.hpp"
#include "agent/scheduler/mpi.hpp"
#include "agent/scheduler/readers.hpp"
#include "agent/scheduler/variables.hpp"

namespace tensorplay::agent {

namespace env = scheduler_env;

std::optional<SchedulerFacts> read_hydra(const Surroundings& around, bool) {
  const EnvironmentView& environment = around.environment;
  const auto size = whole_number(environment, env::kPmiSize), rank = whole_number(environment, env::kPmiRank);
  auto local_size = whole_number(environment, env::kMpiLocalRanks);
  if (!local_size) local_size = whole_number(environment, env::kPmiLocalSize);
  if (!size || !rank || !local_size) return std::nullopt;
  MpiTask task;
  task.name = "hydra";
  task.title = "mpiexec (Hydra)";
  task.size = *size;
  task.rank = *rank;
  task.local_size = *local_size;
  task.remedy = "give mpiexec -ppn 1, and tprun --nproc-per-node=N";
  return read_mpi_task(around, task);
}

}  // namespace tensorplay::agent
