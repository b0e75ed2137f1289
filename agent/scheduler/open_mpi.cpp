// Open MPI, 4 (orte) and 5 (prte): `mpirun -npernode 1 tprun ...`.
#include "agent/scheduler/allocation.hpp"
#include "agent/scheduler/mpi.hpp"
#include "agent/scheduler/readers.hpp"
#include "agent/scheduler/variables.hpp"

namespace tensorplay::agent {
namespace {

namespace env = scheduler_env;

/// The host of "749076480.0;tcp://192.0.2.2,10.0.0.2:56603;tcp6://[fd00::2]:38891": mpirun's own, its first address.
std::string head_of(std::string_view uri) {
  constexpr std::string_view kScheme = "tcp://";
  const auto start = uri.find(kScheme);
  if (start == std::string_view::npos) return "";
  uri.remove_prefix(start + kScheme.size());
  return std::string(uri.substr(0, uri.find_first_of(",:;")));
}

}  // namespace

std::optional<SchedulerFacts> read_open_mpi(const Surroundings& around, bool) {
  const EnvironmentView& environment = around.environment;
  const auto size = whole_number(environment, env::kOmpiSize), rank = whole_number(environment, env::kOmpiRank);
  const auto local_size = whole_number(environment, env::kOmpiLocalSize);
  if (!size || !rank || !local_size) return std::nullopt;
  MpiTask task;
  task.name = "openmpi";
  task.size = *size;
  task.rank = *rank;
  task.local_size = *local_size;
  auto job = environment.find_non_empty(env::kOmpiJob);
  if (!job) job = environment.find_non_empty(env::kPmixNamespace);
  task.title = "Open MPI";
  if (job) {
    task.job = name_of_job("openmpi", *job, 0);
    task.title += " job " + std::string(*job);
  }
  task.head = head_of(environment.find(env::kOmpiHeadUri).value_or(""));
  task.remedy = "give mpirun -npernode 1, and tprun --nproc-per-node=N";
  return read_mpi_task(around, task);
}

}  // namespace tensorplay::agent
