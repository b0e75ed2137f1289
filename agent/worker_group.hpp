/// The workers of one round on this node, with everything that descends from them: started, stopped, reaped, swept.
#pragma once

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
  bool stopped_by_us = false;  ///< We had sent it a signal that stops.
  std::chrono::steady_clock::time_point started_at;
  std::chrono::steady_clock::time_point ended_at;
  double ended_at_unix = 0;
};

struct WorkerGroupOptions {
  bool leave_daemons = false;
  std::chrono::milliseconds helper_grace{500};  ///< What a dead worker's helpers get to clean up after it.
};

/// Thread rules: everything on the loop's thread, callbacks too. The group must outlive its callbacks.
class WorkerGroup {
 public:
  struct Callbacks {
    std::function<void(const WorkerExit&)> on_exit;  ///< One worker has ended (its helpers may still live).
    std::function<void()> on_gone;                   ///< No process of this round is left. Once a round.
  };

  WorkerGroup(asio::io_context& loop, WorkerGroupOptions options, Callbacks callbacks);
  ~WorkerGroup();  ///< Kills what is left, without grace.

  /// Starts all, local rank = index. When one cannot be started those already running are stopped (wait for on_gone)
  /// and StartupFailure is thrown.
  void start(const std::vector<SpawnRequest>& requests);

  /// Sends `signal` to each live worker, and SIGKILL to everything left when `grace` is over. A second call may shorten
  /// the grace, never lengthen it.
  void stop(int signal, std::chrono::milliseconds grace);

  /// SIGKILL to everything, now.
  void kill_now();

  /// Passes a notification such as SIGUSR1 to each live worker.
  void notify(int signal);

  bool has_live_workers() const;
  std::vector<pid_t> pids() const;  ///< By local rank; -1 for those that have ended.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorplay::agent
