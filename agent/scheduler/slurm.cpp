// SLURM. Only step variables tell of other nodes: SLURM_NODEID, SLURM_PROCID and SLURM_NTASKS stand in every batch
// script too. Steps number their own nodes, heterogeneous steps across all components (seen with 22.05).
#include "agent/option_values.hpp"
#include "agent/scheduler/allocation.hpp"
#include "agent/scheduler/hostlist.hpp"
#include "agent/scheduler/readers.hpp"
#include "agent/scheduler/variables.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>
#include <cctype>

namespace tensorplay::agent {
namespace {

namespace env = scheduler_env;

/// From here on up a step id is no number of srun's: 4294967291 is a batch script, ...90 a shell of salloc.
constexpr long kLastStep = 4'000'000'000;

bool is_key(std::string_view written, std::string_view key) {
  return written.size() == key.size() && std::equal(written.begin(), written.end(), key.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
         });
}

std::vector<std::string> hosts_in(const EnvironmentView& environment, const char* name) {
  const auto text = environment.find_non_empty(name);
  const auto hosts = text ? expand_hostlist(*text) : std::nullopt;
  return hosts.value_or(std::vector<std::string>{});
}

/// A component of a heterogeneous job has an id of its own, which only the daemon's title shows.
bool is_job(const EnvironmentView& environment, std::string_view job) {
  if (environment.find(env::kSlurmJobId) == job) return true;
  for (const std::string_view entry : environment.entries()) {
    if (entry.starts_with(env::kSlurmJobIdOfComponent) && entry.substr(entry.find('=') + 1) == job) return true;
  }
  return false;
}

/// What srun started has a step daemon above it that bears the step's name. sbatch and salloc pass the variables of the
/// step they are called in on to the new job; there another daemon is above. nullopt where none can be seen.
std::optional<bool> step_is_above(const Surroundings& around, std::string_view step) {
  for (const std::string& command : around.machine.ancestors()) {
    constexpr std::string_view kDaemon = "slurmstepd: [";
    if (!command.starts_with(kDaemon)) continue;
    const std::string_view name = std::string_view(command).substr(kDaemon.size(), command.find(']') - kDaemon.size());
    const auto dot = name.rfind('.');
    return dot != std::string_view::npos && name.substr(dot + 1) == step &&
           is_job(around.environment, name.substr(0, dot));
  }
  return std::nullopt;
}

bool is_in_step(const Surroundings& around) {
  const EnvironmentView& environment = around.environment;
  for (const char* needed : {env::kSlurmJobId, env::kSlurmStepNodelist, env::kSlurmStepNumNodes, env::kSlurmNodeId}) {
    if (!environment.find_non_empty(needed)) return false;
  }
  const std::string_view step = environment.find(env::kSlurmStepId).value_or("");
  const auto number = as_whole(step);
  if (!number || *number < 0 || *number > kLastStep) return false;
  if (const auto above = step_is_above(around, step)) return *above;
  const auto job_hosts = hosts_in(environment, env::kSlurmJobNodelist);
  if (job_hosts.empty()) return true;
  const auto step_hosts = hosts_in(environment, env::kSlurmStepNodelist);
  return std::all_of(step_hosts.begin(), step_hosts.end(), [&job_hosts](const std::string& host) {
    return std::find(job_hosts.begin(), job_hosts.end(), host) != job_hosts.end();
  });
}

}  // namespace

std::optional<Allocation> slurm_allocation(const Surroundings& around) {
  const auto job = around.environment.find_non_empty(env::kSlurmJobId);
  if (!job) return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "slurm";
  allocation.title = "SLURM job " + std::string(*job);
  allocation.restart_count = whole_number(around.environment, env::kSlurmRestartCount).value_or(0);
  allocation.job = name_of_job("slurm", *job, allocation.restart_count);
  allocation.hosts = hosts_in(around.environment, env::kSlurmJobNodelist);
  allocation.how_to_use_all = "srun tprun ...";
  return allocation;
}

std::optional<SchedulerFacts> read_slurm(const Surroundings& around, bool) {
  const auto allocation = slurm_allocation(around);
  if (!allocation) return std::nullopt;
  if (!is_in_step(around)) return make_facts_of_script(*allocation);

  const EnvironmentView& environment = around.environment;
  const std::string job(*environment.find(env::kSlurmJobId)), step(*environment.find(env::kSlurmStepId));
  const std::string where = allocation->title + ", step " + step;
  const int nodes = whole_number(environment, env::kSlurmStepNumNodes).value_or(1);
  const int index = whole_number(environment, env::kSlurmNodeId).value_or(0);
  const int tasks = whole_number(environment, env::kSlurmStepNumTasks).value_or(nodes);
  if (tasks > nodes) {
    const auto here = split(environment.find(env::kSlurmGtids).value_or(""), ',').size();
    refuse_several_here(where, static_cast<int>(std::max<std::size_t>(here, 2)),
                        whole_number(environment, env::kSlurmProcId).value_or(0) == 0,
                        "give srun --ntasks-per-node=1, and tprun --nproc-per-node=N");
  }
  auto facts = make_facts("slurm", where, name_of_job("slurm", job + "." + step, allocation->restart_count), nodes,
                          index, hosts_in(environment, env::kSlurmStepNodelist));
  facts.restart_count = allocation->restart_count;
  if (facts.restart_count > 0) facts.conclusion += ", restart " + std::to_string(facts.restart_count);
  if (const auto gpus = whole_number(environment, env::kSlurmGpusOnNode); gpus && *gpus > 0) facts.workers_here = gpus;
  return facts;
}

std::optional<std::chrono::milliseconds> slurm_kill_wait(const Surroundings& around) {
  const std::string path(around.environment.find_non_empty(env::kSlurmConf).value_or("/etc/slurm/slurm.conf"));
  const auto text = around.machine.read_file(path);
  if (!text) return std::nullopt;
  long seconds = 30;
  for (const std::string_view line : split(*text, '\n')) {
    const std::string_view statement = trimmed(line.substr(0, line.find('#')));
    const auto equals = statement.find('=');
    if (equals == std::string_view::npos || !is_key(trimmed(statement.substr(0, equals)), "KillWait")) continue;
    seconds = as_whole(statement.substr(equals + 1)).value_or(seconds);
  }
  return std::chrono::seconds(seconds);
}

}  // namespace tensorplay::agent
