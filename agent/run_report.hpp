/// The story of a whole run as facts: every attempt, every worker of this node, what failed, and whose exit code
/// tprun's is. The agent fills it while it works; the failure report prints it for people, `--report FILE` writes it
/// for programs. docs/failure-report.md describes the file.
#pragma once

#include "rendezvous/messages.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// One worker of this node in one attempt.
struct WorkerRecord {
  int rank = -1;  ///< Global rank.
  int local_rank = -1;
  int pid = 0;
  double started_at = 0;  ///< Unix time, seconds.
  double ended_at = 0;    ///< 0 while it runs.
  int exit_code = 0;      ///< 0 when a signal ended it.
  int signal = 0;
  bool stopped_by_us = false;  ///< Our own stop signal was sent before it ended.
  std::string stdout_log;      ///< Path; empty when there is none.
  std::string stderr_log;
};

/// Where the time of a restart went, each in ms after the one before; on one node.
struct RestartTimes {
  double stopping_ms = 0;    ///< From the first end of the last attempt until no process of it was left.
  double rendezvous_ms = 0;  ///< From there until the order for this attempt came.
  double spawning_ms = 0;    ///< From there until the last worker had been started.
  std::optional<double> first_store_use_ms;  ///< From there until a worker first used the store.
};

/// One round, as this node saw it.
struct AttemptRecord {
  int round = 0;
  int restart_count = 0;  ///< Failures of the world before it.
  int world_size = 0;
  int group_rank = 0;  ///< This node's index.
  int group_world_size = 1;
  double started_at = 0;                ///< Unix time at which its first worker was started.
  double ended_at = 0;                  ///< Unix time at which its last process was gone; 0 while it runs.
  std::string ended_because;            ///< "succeeded", "failed", "membership changed", "stopped by SIGTERM", ...
  std::optional<RestartTimes> restart;  ///< How it came to be; absent for the first.
  std::vector<WorkerRecord> workers;
  std::vector<rendezvous::WorkerFailure> failures;  ///< Known here, in the order they were seen.
};

/// Thread rules: a value.
struct RunReport {
  std::string run_id;
  std::string program;  ///< ProgramPlan::display_name.
  std::string host;
  std::string log_folder;  ///< Empty: none was made.
  int max_restarts = 0;
  double started_at = 0;  ///< Unix time, seconds.
  double ended_at = 0;
  int exit_code = 0;    ///< What tprun exits with.
  int stop_signal = 0;  ///< Non-zero: tprun was stopped by it and ends by it.
  std::vector<AttemptRecord> attempts;
  /// Ranks of the last attempt whose last lines on stderr stand right above the report: not quoted in it again.
  std::vector<int> ranks_in_sight;
  std::optional<rendezvous::FinishOrder>
      finish;  ///< The leader's last word, with the root cause; absent when none came.
};

/// Whose exit code tprun's is, for people: "rank 2's", "SIGTERM sent to tprun", "all workers ended well", ...
std::string exit_code_owner(const RunReport& report);

/// The report as one JSON object, indented, ending with a newline.
std::string to_json_text(const RunReport& report);

/// Writes it beside `path` and renames it into place, so that a reader never sees half of it. Throws DistError with the
/// path and what went wrong.
void write_run_report(const std::string& path, const RunReport& report);

}  // namespace tensorplay::agent
