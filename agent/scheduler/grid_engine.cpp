// Grid Engine. Nothing in the environment tells the job script from what `qrsh -inherit` started: by itself tprun takes
// one node, and --scheduler=sge settles that every host of the parallel environment runs one.
#include "agent/option_values.hpp"
#include "agent/scheduler/allocation.hpp"
#include "agent/scheduler/readers.hpp"
#include "agent/scheduler/variables.hpp"
#include "agent/usage_error.hpp"

namespace tensorplay::agent {

namespace env = scheduler_env;

std::optional<Allocation> grid_engine_allocation(const Surroundings& around) {
  const EnvironmentView& environment = around.environment;
  // JOB_ID alone is anybody's.
  const auto job = environment.find_non_empty(env::kSgeJobId);
  if (!job || (!environment.find_non_empty(env::kSgeRoot) && !environment.find_non_empty(env::kSgeHostfile))) {
    return std::nullopt;
  }
  Allocation allocation;
  allocation.scheduler = "sge";
  std::string name(*job);
  if (const auto element = whole_number(environment, env::kSgeTaskId)) name += "." + std::to_string(*element);
  allocation.title = "Grid Engine job " + name;
  allocation.restart_count = whole_number(environment, env::kSgeRestarted).value_or(0);
  allocation.job = name_of_job("sge", name, allocation.restart_count);
  allocation.how_to_use_all = "tprun --hostfile=\"$PE_HOSTFILE\" --ssh-command='qrsh -inherit' ...";
  const auto path = environment.find_non_empty(env::kSgeHostfile);
  const auto text = path ? around.machine.read_file(std::string(*path)) : std::nullopt;
  if (!text) return allocation;
  std::vector<std::string> hosts;
  for (const std::string_view line : split(*text, '\n')) {
    const std::string_view statement = trimmed(line);
    if (!statement.empty()) hosts.emplace_back(statement.substr(0, statement.find_first_of(" \t")));
  }
  allocation.hosts = each_once(hosts);
  return allocation;
}

std::optional<SchedulerFacts> read_grid_engine(const Surroundings& around, bool is_named) {
  const auto allocation = grid_engine_allocation(around);
  if (!allocation) return std::nullopt;
  if (!is_named) return make_facts_of_script(*allocation);
  const auto index = index_of_this_host(around, allocation->hosts);
  if (!index) {
    throw UsageError("--scheduler=sge: this host (" + around.machine.host_name() +
                     ") is not in the file of PE_HOSTFILE; give --nnodes and --rdzv-endpoint");
  }
  return make_facts("sge", allocation->title, allocation->job, static_cast<int>(allocation->hosts.size()), *index,
                    allocation->hosts);
}

}  // namespace tensorplay::agent
