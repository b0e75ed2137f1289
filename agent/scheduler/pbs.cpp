// PBS and Torque. The job script runs on the first host as task 1 of node 0; pbsdsh and pbs_tmrsh start further tasks,
// with higher task numbers or on other nodes. The node file names a host once for each of its slots, and other hosts
// than the first may lack it.
#include "agent/option_values.hpp"
#include "agent/scheduler/allocation.hpp"
#include "agent/scheduler/readers.hpp"
#include "agent/scheduler/variables.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>

namespace tensorplay::agent {

namespace env = scheduler_env;

std::optional<Allocation> pbs_allocation(const Surroundings& around) {
  const auto job = around.environment.find_non_empty(env::kPbsJobId);
  if (!job) return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "pbs";
  allocation.title = "PBS job " + std::string(*job);
  allocation.job = name_of_job("pbs", *job, 0);
  allocation.how_to_use_all = "tprun --hostfile=\"$PBS_NODEFILE\" ...";
  const auto path = around.environment.find_non_empty(env::kPbsNodefile);
  const auto text = path ? around.machine.read_file(std::string(*path)) : std::nullopt;
  if (!text) return allocation;
  std::vector<std::string> lines;
  for (const std::string_view line : split(*text, '\n')) {
    if (!trimmed(line).empty()) lines.emplace_back(trimmed(line));
  }
  allocation.hosts = each_once(lines);
  return allocation;
}

std::optional<SchedulerFacts> read_pbs(const Surroundings& around, bool is_named) {
  const auto allocation = pbs_allocation(around);
  if (!allocation) return std::nullopt;
  const int node = whole_number(around.environment, env::kPbsNodeNum).value_or(0);
  // Eight hexadecimal digits in OpenPBS.
  std::string task(around.environment.find(env::kPbsTaskNum).value_or("1"));
  task.erase(0, std::min(task.find_first_not_of('0'), task.size() - (task.empty() ? 0 : 1)));
  const bool is_task = node > 0 || task != "1";
  if (!is_task && !is_named) return make_facts_of_script(*allocation);
  if (allocation->hosts.empty()) {
    throw UsageError(allocation->title +
                     ": the hosts are not known here, since the file of PBS_NODEFILE cannot be read; copy it to a "
                     "folder that all nodes share, or give --rdzv-endpoint");
  }
  const auto index = index_of_this_host(around, allocation->hosts);
  const int count = static_cast<int>(allocation->hosts.size());
  if (!index && node >= count) {
    throw UsageError(allocation->title + ": this host (" + around.machine.host_name() +
                     ") is not in the file of PBS_NODEFILE; give --nnodes and --rdzv-endpoint");
  }
  return make_facts("pbs", allocation->title, allocation->job, count, index.value_or(node), allocation->hosts);
}

}  // namespace tensorplay::agent
