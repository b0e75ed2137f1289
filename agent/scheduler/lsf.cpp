// LSF. The job script runs on the first host; blaunch numbers the tasks that it starts, jsrun tells each its rank.
// Where a task runs is known by the host's name only.
#include "agent/option_values.hpp"
#include "agent/scheduler/allocation.hpp"
#include "agent/scheduler/readers.hpp"
#include "agent/scheduler/variables.hpp"
#include "agent/usage_error.hpp"

namespace tensorplay::agent {
namespace {

namespace env = scheduler_env;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, ' ')) {
    if (!trimmed(word).empty()) words.emplace_back(trimmed(word));
  }
  return words;
}

/// "n1 4 n2 4", or where that is missing "n1 n1 n1 n1 n2 ...".
std::vector<std::string> read_hosts(const EnvironmentView& environment) {
  if (const auto counted = environment.find_non_empty(env::kLsbMcpuHosts)) {
    const auto words = words_of(*counted);
    std::vector<std::string> hosts;
    for (std::size_t i = 0; i < words.size(); i += 2) hosts.push_back(words[i]);
    return each_once(hosts);
  }
  return each_once(words_of(environment.find(env::kLsbHosts).value_or("")));
}

/// jsrun's own count. Its allocation may begin with the host of the job script, where it starts nothing.
SchedulerFacts read_jsrun(const Allocation& allocation, const EnvironmentView& environment, int size) {
  const int rank = whole_number(environment, env::kJsmRank).value_or(0);
  if (const int here = whole_number(environment, env::kJsmLocalSize).value_or(1); here > 1) {
    refuse_several_here(allocation.title, here, rank == 0, "give jsrun -r1 -a1, and tprun --nproc-per-node=N");
  }
  std::vector<std::string> hosts = allocation.hosts;
  if (hosts.size() == static_cast<std::size_t>(size) + 1) hosts.erase(hosts.begin());
  return make_facts("lsf", allocation.title, allocation.job, size, rank, std::move(hosts));
}

}  // namespace

std::optional<Allocation> lsf_allocation(const Surroundings& around) {
  const auto job = around.environment.find_non_empty(env::kLsbJobId);
  if (!job) return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "lsf";
  std::string name(*job);
  if (const int element = whole_number(around.environment, env::kLsbJobIndex).value_or(0); element > 0) {
    name += "[" + std::to_string(element) + "]";
  }
  allocation.title = "LSF job " + name;
  allocation.job = name_of_job("lsf", name, 0);
  allocation.hosts = read_hosts(around.environment);
  allocation.how_to_use_all = "tprun --hosts=... --ssh-command=blaunch, or blaunch tprun once on each host";
  return allocation;
}

std::optional<SchedulerFacts> read_lsf(const Surroundings& around, bool is_named) {
  const auto allocation = lsf_allocation(around);
  if (!allocation) return std::nullopt;
  if (const auto size = whole_number(around.environment, env::kJsmSize)) {
    return read_jsrun(*allocation, around.environment, *size);
  }
  const auto task = whole_number(around.environment, env::kLsfPmTaskId);
  if (!task && !is_named) return make_facts_of_script(*allocation);
  const int count = static_cast<int>(allocation->hosts.size());
  const auto index = index_of_this_host(around, allocation->hosts);
  if (!index) {
    throw UsageError(allocation->title + ": this host (" + around.machine.host_name() +
                     ") is not in LSB_MCPU_HOSTS; give --nnodes and --rdzv-endpoint");
  }
  if (task && *task > count) {
    refuse_several_here(allocation->title, 2, false, "give blaunch -z with each host once");
  }
  return make_facts("lsf", allocation->title, allocation->job, count, *index, allocation->hosts);
}

}  // namespace tensorplay::agent
