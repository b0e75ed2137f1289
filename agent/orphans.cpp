#include "agent/orphans.hpp"

#include "agent/process_tree.hpp"
#include "runtime/base/environment.hpp"

#include <cstdlib>
#include <unistd.h>
#include <unordered_set>

namespace tensorplay::agent {

namespace {

int owner_of(const ProcessStat& orphan, const std::vector<WorkerTrace>& workers, const std::string& mark_prefix) {
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    const WorkerTrace& worker = workers[rank];
    const bool is_its_own =
        orphan.session == worker.pid || (worker.cgroup != nullptr && worker.cgroup->contains(orphan.pid));
    if (is_its_own) return static_cast<int>(rank);
  }
  const auto mark = initial_environment_of(orphan.pid, base::env::kWorkerMark);
  if (!mark || !mark->starts_with(mark_prefix)) return -1;
  const int rank = std::atoi(mark->c_str() + mark_prefix.size());
  return rank >= 0 && static_cast<std::size_t>(rank) < workers.size() ? rank : -1;
}

}  // namespace

std::vector<Orphan> find_orphans(const std::vector<WorkerTrace>& workers, const std::string& mark_prefix) {
  std::unordered_set<pid_t> live;
  for (const WorkerTrace& worker : workers) {
    if (worker.live) live.insert(worker.pid);
  }
  std::vector<Orphan> orphans;
  for (const pid_t child : children_of(getpid())) {
    if (live.count(child) != 0) continue;
    const auto stat = read_process_stat(child);
    if (stat && stat->state != 'Z') orphans.push_back({child, owner_of(*stat, workers, mark_prefix)});
  }
  return orphans;
}

}  // namespace tensorplay::agent
