/// One function for each scheduler: its facts, or nullopt where it did not start this process. `is_named`: the user
/// said
/// --scheduler=NAME, so that what would be too weak alone will do.
#pragma once

#include "agent/scheduler/facts.hpp"

namespace tensorplay::agent {

std::optional<SchedulerFacts> read_slurm(const Surroundings& around, bool is_named);
std::optional<SchedulerFacts> read_pbs(const Surroundings& around, bool is_named);
std::optional<SchedulerFacts> read_lsf(const Surroundings& around, bool is_named);
std::optional<SchedulerFacts> read_grid_engine(const Surroundings& around, bool is_named);
std::optional<SchedulerFacts> read_open_mpi(const Surroundings& around, bool is_named);
std::optional<SchedulerFacts> read_hydra(const Surroundings& around, bool is_named);
std::optional<SchedulerFacts> read_kubernetes(const Surroundings& around, bool is_named);

/// KillWait of slurm.conf: SLURM's own default where the file does not name it, nullopt where it cannot be read.
std::optional<std::chrono::milliseconds> slurm_kill_wait(const Surroundings& around);

}  // namespace tensorplay::agent
