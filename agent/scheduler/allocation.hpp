/// The hosts that a batch scheduler has given to a job, and what names the job. Every process of the job can know this,
/// also one that was started on one node only: an allocation alone is no evidence of peers.
#pragma once

#include "agent/scheduler/facts.hpp"

namespace tensorplay::agent {

struct Allocation {
  std::string scheduler;  ///< As --scheduler has it.
  std::string title;      ///< For people: "SLURM job 42".
  std::string job;        ///< What names this start of the job: "slurm-42", "slurm-42-r1".
  int restart_count = 0;
  std::vector<std::string> hosts;  ///< Each once, in the scheduler's order; empty where it does not tell.
  std::string how_to_use_all;      ///< "srun tprun ...": for the hint.
};

std::optional<Allocation> slurm_allocation(const Surroundings& around);
std::optional<Allocation> pbs_allocation(const Surroundings& around);
std::optional<Allocation> lsf_allocation(const Surroundings& around);
std::optional<Allocation> grid_engine_allocation(const Surroundings& around);

/// The first of these that is here.
std::optional<Allocation> find_allocation(const Surroundings& around);

/// "slurm-42", or "slurm-42-r1" when it was started again.
std::string name_of_job(std::string_view scheduler, std::string_view job, int restart_count);

/// The value as a whole number; nullopt when unset or not one.
std::optional<int> whole_number(const EnvironmentView& environment, std::string_view name);

/// `words` without repetitions, in order.
std::vector<std::string> each_once(const std::vector<std::string>& words);

/// The index of this machine among `hosts`, by name up to the first dot; nullopt when it is not among them.
std::optional<int> index_of_this_host(const Surroundings& around, const std::vector<std::string>& hosts);

/// Facts of a node of many; run id, ports and conclusion are made from the rest. `where` names what started tprun:
/// "SLURM job 42, step 0".
SchedulerFacts make_facts(std::string name, const std::string& where, std::string run_id, int nodes, int node_index,
                          std::vector<std::string> hosts);

/// Facts of a process that the job script itself started: this node alone, with a hint when the allocation has more.
SchedulerFacts make_facts_of_script(const Allocation& allocation);

/// Throws for tprun started `tasks` times on one node. Said by the task with rank 0 only: one mistake, one line.
[[noreturn]] void refuse_several_here(const std::string& where, int tasks, bool is_first, const std::string& remedy);

}  // namespace tensorplay::agent
