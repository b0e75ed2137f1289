/// Where the workers' streams go: straight to a file, to the console, or both; and the tail of each stderr that the
/// failure report quotes. Reading happens on the loop, writing on threads with bounded queues: a full queue stops the
/// reading of that worker's pipe, never the loop.
#pragma once

#include "agent/console.hpp"
#include "agent/launch_plan.hpp"
#include "runtime/base/fd.hpp"

#include <asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// The three descriptors a worker is started with; each is closed in the parent after the spawn.
struct WorkerStdio {
  base::UniqueFd in;       ///< Empty: /dev/null.
  base::UniqueFd out;      ///< Empty: inherited.
  base::UniqueFd err;      ///< Empty: inherited.
  std::string error_file;  ///< TORCHELASTIC_ERROR_FILE for this worker; its folder exists. Empty: error files are off.
  std::string stdout_log;  ///< Path of its stdout.log; empty when not redirected.
  std::string stderr_log;  ///< Path of its stderr.log; empty when not redirected.
};

/// Thread rules: loop thread only.
class WorkerOutput {
 public:
  /// Shows what is to be shown on `console`, which outlives this object.
  WorkerOutput(asio::io_context& loop, const LaunchPlan& plan, Console& console);
  /// The same with a console of its own on stdout and stderr.
  WorkerOutput(asio::io_context& loop, const LaunchPlan& plan);
  ~WorkerOutput();  ///< Writes out what is queued (bounded in time), then removes temporary error folders.

  /// Makes files and pipes for one worker of a round. Throws DistError (with path and errno text) when it cannot.
  WorkerStdio open(int round, int local_rank, int global_rank);

  /// Calls `done` once the streams of all workers of the round are at their end and written, or at the deadline (a
  /// daemon that was left may hold a pipe open). A console that is slow but takes its bytes gets more time.
  void drain(std::chrono::milliseconds limit, std::function<void()> done);

  /// The last lines of a worker's stderr in the current round, oldest first and fit to be printed; empty when a
  /// terminal had it. Complete once drained.
  std::vector<std::string> last_lines(int local_rank, std::size_t count = 20) const;

  /// Whether those lines are the end of what workers have put on tprun's own stderr, or near it: nobody has to be shown
  /// them again.
  bool is_in_sight(int local_rank) const;

  /// Folder of this run's logs; empty when none was made.
  const std::string& run_folder() const;

  /// The console it shows things on: the place for the agent's own words.
  Console& console();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorplay::agent
