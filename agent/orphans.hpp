/// Processes that lost their parent and fell to the agent: whose they were.
#pragma once

#include "agent/worker_cgroup.hpp"

#include <string>
#include <vector>

#include <sys/types.h>

namespace tensorplay::agent {

/// What is known of one worker, by local rank.
struct WorkerTrace {
  pid_t pid = -1;
  bool live = false;
  const WorkerCgroup* cgroup = nullptr;
};

/// A child of this process that is not a live worker.
struct Orphan {
  pid_t pid = -1;
  int owner = -1;  ///< Local rank of the worker it descends from; -1 when that cannot be told.
};

/// All orphans that have not ended. Whose one is, is told by its cgroup, its session or its mark; one that has left all
/// three has no owner. The mark is TPRUN_WORKER in its environment: the agent's pid, the round and the local rank with
/// dots between; `mark_prefix` is its value up to the local rank.
std::vector<Orphan> find_orphans(const std::vector<WorkerTrace>& workers, const std::string& mark_prefix);

}  // namespace tensorplay::agent
