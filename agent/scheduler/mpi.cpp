#include "agent/scheduler/mpi.hpp"

#include "agent/scheduler/allocation.hpp"
#include "agent/scheduler/variables.hpp"
#include "agent/usage_error.hpp"
#include "runtime/base/environment.hpp"

namespace tensorplay::agent {
namespace {

bool is_srun(const EnvironmentView& environment, const MpiTask& task) {
  return whole_number(environment, scheduler_env::kSlurmProcId) == task.rank &&
         whole_number(environment, scheduler_env::kSlurmStepNumTasks) == task.size;
}

/// The allocation's hosts where there are as many as tasks: more, and nobody here knows which of them were taken.
std::vector<std::string> find_hosts(const Surroundings& around, const std::optional<Allocation>& allocation,
                                    const MpiTask& task) {
  if (allocation && allocation->hosts.size() == static_cast<std::size_t>(task.size)) return allocation->hosts;
  if (const auto master = around.environment.find_non_empty(base::env::kMasterAddr)) return {std::string(*master)};
  // Launchers fill an allocation from its first host on.
  if (allocation && allocation->hosts.size() > static_cast<std::size_t>(task.size)) {
    return {allocation->hosts.begin(), allocation->hosts.begin() + task.size};
  }
  if (!task.head.empty()) return {task.head};
  return {};
}

}  // namespace

std::optional<SchedulerFacts> read_mpi_task(const Surroundings& around, const MpiTask& task) {
  if (is_srun(around.environment, task)) return std::nullopt;
  if (task.local_size > 1) refuse_several_here(task.title, task.local_size, task.rank == 0, task.remedy);
  const auto allocation = find_allocation(around);
  const std::string title = allocation ? task.title + " in " + allocation->title : task.title;
  const std::string job = !task.job.empty() ? task.job : allocation ? allocation->job : "";
  const auto hosts = task.size > 1 ? find_hosts(around, allocation, task) : std::vector<std::string>{};
  if (task.size > 1 && (hosts.empty() || job.empty())) {
    throw UsageError(title + ": its launcher tells neither the hosts nor a name of the job; give --nnodes=" +
                     std::to_string(task.size) + ", --rdzv-backend=c10d, --rdzv-endpoint=HOST:PORT and --rdzv-id");
  }
  auto facts = make_facts(task.name, title, job.empty() ? task.name : job, task.size, task.rank, hosts);
  if (job.empty()) facts.run_id.clear();
  if (allocation) facts.restart_count = allocation->restart_count;
  return facts;
}

}  // namespace tensorplay::agent
