#include "agent/scheduler/facts.hpp"

#include "agent/scheduler/readers.hpp"
#include "agent/scheduler/variables.hpp"
#include "agent/usage_error.hpp"
#include "runtime/base/environment.hpp"

#include <array>

namespace tensorplay::agent {
namespace {

struct Reader {
  std::string_view name;
  std::optional<SchedulerFacts> (*read)(const Surroundings&, bool);
  std::string_view lacks;  ///< What is not set where this one is not.
};

/// MPI launchers first: they run inside the jobs of the others.
constexpr std::array kReaders = {
    Reader{"openmpi", read_open_mpi, "OMPI_COMM_WORLD_SIZE"},
    Reader{"hydra", read_hydra, "PMI_SIZE and MPI_LOCALNRANKS"},
    Reader{"slurm", read_slurm, "SLURM_JOB_ID"},
    Reader{"pbs", read_pbs, "PBS_JOBID"},
    Reader{"lsf", read_lsf, "LSB_JOBID"},
    Reader{"sge", read_grid_engine, "JOB_ID with SGE_ROOT"},
    Reader{"kubernetes", read_kubernetes, "JOB_COMPLETION_INDEX, nor MASTER_ADDR with RANK and WORLD_SIZE"},
};

}  // namespace

SchedulerFacts find_scheduler_facts(const Surroundings& around, std::string_view choice) {
  if (choice == "none") return {};
  // The tprun above has used up what the scheduler says; this one is a worker's own affair.
  if (choice == "auto" && around.environment.find(base::env::kWorkerMark)) return {};
  for (const Reader& reader : kReaders) {
    const bool is_named = choice == reader.name;
    if (!is_named && choice != "auto") continue;
    if (auto facts = reader.read(around, is_named)) return std::move(*facts);
    if (is_named) {
      throw UsageError("--scheduler=" + std::string(choice) + ": it did not start this: " + std::string(reader.lacks) +
                       " is not set here; drop the option, or give --scheduler=none");
    }
  }
  return {};
}

std::optional<std::chrono::milliseconds> find_kill_wait(const Surroundings& around, std::string_view choice) {
  const bool is_slurm = around.environment.find_non_empty(scheduler_env::kSlurmJobId).has_value();
  if (choice == "slurm" || (choice == "auto" && is_slurm)) return slurm_kill_wait(around);
  return std::nullopt;
}

}  // namespace tensorplay::agent
