/// The workers of one round on this node, with everything that descends from them: started, stopped, reaped, swept.
///
/// How a worker ends: it gets the stop signal alone, and the grace. If it ends in grace while descendants of it live,
/// those whose parent it was get the same signal and the rest of the grace (a trainer under `bash run.sh`). After a
/// worker's end its helpers have `helper_grace` to clean up after it; then everything that descends from it is killed,
/// daemons in sessions of their own included.
///
/// SIGCHLD is the one event for workers and for orphans that fall to us alike. So the process must be a child
/// subreaper, SIGCHLD must be blocked in all its threads, and no other thread may start or wait for children while a
/// group lives.
#pragma once

#include "agent/containment.hpp"
#include "agent/worker_process.hpp"

#include <asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace tensorplay::agent {

struct WorkerExit {
  int local_rank = -1;
  pid_t pid = -1;
  int exit_code = 0;  ///< 0 when a signal ended it.
  int signal = 0;
  bool dumped_core = false;    ///< The kernel wrote a core file.
  bool stopped_by_us = false;  ///< We had sent it a signal that stops.
  std::chrono::steady_clock::time_point started_at;
  std::chrono::steady_clock::time_point ended_at;
  double ended_at_unix = 0;
};

struct WorkerGroupOptions {
  bool leave_daemons = false;  ///< What workers left behind may stay when all of them ended well, unstopped.
  std::chrono::milliseconds helper_grace{500};   ///< What a dead worker's helpers get to clean up after it.
  std::chrono::milliseconds kill_limit{30'000};  ///< How long SIGKILL may take before we go on without (D state).
  /// A worker that hangs in uninterruptible sleep for so long ends the round. Zero: not looked for.
  std::chrono::milliseconds uninterruptible_limit{0};
};

/// Thread rules: everything on the loop's thread, callbacks too. The group must outlive its callbacks.
class WorkerGroup {
 public:
  struct Callbacks {
    std::function<void(const WorkerExit&)> on_exit;  ///< One worker has ended (its helpers may still live).
    std::function<void()> on_gone;                   ///< No process of this round is left. Once a round.
    ///< SIGKILL did not end these within `kill_limit`, or one hung for `uninterruptible_limit`; on_gone follows. Start
    ///< nothing after it. May be empty: then a line on stderr says it.
    std::function<void(const std::vector<Unkillable>&)> on_unkillable;
  };

  WorkerGroup(asio::io_context& loop, WorkerGroupOptions options, Callbacks callbacks);
  ~WorkerGroup();  ///< Kills what is left, without grace; blocks for at most 2 s.

  /// Starts all, local rank = index. When one cannot be started those already running are killed (wait for on_gone) and
  /// StartupFailure is thrown. Call again for the next round, after on_gone.
  void start(const std::vector<SpawnRequest>& requests);

  /// Sends `signal` to each live worker, and SIGKILL to everything left when `grace` is over. A second call may shorten
  /// the grace, never lengthen it.
  void stop(int signal, std::chrono::milliseconds grace);

  /// The same when somebody else has already sent `signal` to every worker.
  void stop_already_signalled(int signal, std::chrono::milliseconds grace);

  /// SIGKILL to everything, now.
  void kill_now();

  /// Passes a notification such as SIGUSR1 to each live worker. SIGTSTP freezes the workers with all that descends from
  /// them (SIGSTOP, since a session leader's SIGTSTP has no effect), SIGCONT thaws what SIGTSTP has frozen.
  void notify(int signal);

  bool has_live_workers() const;
  std::vector<pid_t> pids() const;  ///< By local rank; -1 for those that have ended.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorplay::agent
