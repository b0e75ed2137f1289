/// One round of the world on this node: what its workers are started with, and what became of each.
#pragma once

#include "agent/agent_core.hpp"
#include "agent/launch_plan.hpp"
#include "agent/oom_watch.hpp"
#include "agent/run_report.hpp"
#include "agent/worker_group.hpp"
#include "agent/worker_output.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// Thread rules: loop thread. Plan and output must outlive it.
class NodeRound {
 public:
  NodeRound(const LaunchPlan& plan, const rendezvous::StartOrder& order, WorkerOutput& output, std::string host);

  /// Opens the workers' streams and makes what each is started with. Throws DistError when files cannot be made.
  const std::vector<SpawnRequest>& prepare();

  /// After the spawn: closes this side of the workers' streams and counts OOM kills from here on.
  void started(const std::vector<pid_t>& pids);

  /// A worker has ended: remembers it, and says what the core must know.
  WorkerEnded ended(const WorkerExit& exit);

  /// A worker could not be started.
  WorkerEnded not_started(int local_rank, const std::string& why, int exit_code);

  /// Every worker that did not end well, in the order of their ends, with all that their output and error files tell by
  /// now.
  std::vector<rendezvous::WorkerFailure> complete_failures();

  /// The round as the report tells it, as far as it has come.
  const AttemptRecord& record() const { return record_; }
  AttemptRecord& record() { return record_; }

 private:
  void add_details(rendezvous::WorkerFailure& failure) const;
  rendezvous::WorkerFailure& add_failure(int local_rank);

  const LaunchPlan& plan_;
  rendezvous::StartOrder order_;
  WorkerOutput& output_;
  std::string host_;
  std::optional<OomWatch> oom_;  ///< Made after the spawn: it reads files, and the workers do not wait for it.
  std::vector<WorkerStdio> stdio_;
  std::vector<SpawnRequest> requests_;
  std::vector<rendezvous::WorkerFailure> failures_;
  AttemptRecord record_;
};

/// Seconds since 1970, as reports count.
double unix_now();

}  // namespace tensorplay::agent
