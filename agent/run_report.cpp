#include "agent/run_report.hpp"

#include "agent/atomic_file.hpp"
#include "rendezvous/failure_judgement.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <nlohmann/json.hpp>

namespace tensorplay::agent {
namespace {

using nlohmann::ordered_json;
namespace exit_code = distributed::exit_code;

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}

ordered_json time_or_null(double time) {
  return time > 0 ? ordered_json(time) : ordered_json();
}

ordered_json signal_or_null(int signal) {
  return signal == 0 ? ordered_json() : ordered_json(rendezvous::signal_name(signal));
}

/// A process that ended by a signal has no exit code, one that still runs has neither.
ordered_json code_or_null(int code, int signal, bool has_ended = true) {
  return signal != 0 || !has_ended ? ordered_json() : ordered_json(code);
}

ordered_json to_json(const rendezvous::WorkerFailure& failure) {
  ordered_json object;
  object["rank"] = failure.rank;
  object["local_rank"] = failure.local_rank;
  object["host"] = failure.host;
  object["pid"] = failure.pid;
  object["exit_code"] = code_or_null(failure.exit_code, failure.signal);
  object["signal"] = signal_or_null(failure.signal);
  object["dumped_core"] = failure.dumped_core;
  object["ended"] = rendezvous::describe_end(failure);
  object["stopped_by_tprun"] = failure.stopped_by_us;
  object["out_of_memory"] = failure.out_of_memory;
  object["startup_failure"] = failure.is_startup_failure;
  object["followed_from"] = failure.followed_from < 0 ? ordered_json() : ordered_json(failure.followed_from);
  object["ended_at"] = time_or_null(failure.ended_at);
  object["thrown_at"] = failure.thrown_at ? ordered_json(*failure.thrown_at) : ordered_json();
  object["runtime_seconds"] = failure.runtime_seconds;
  object["message"] = text_or_null(failure.message);
  object["traceback"] = text_or_null(failure.traceback);
  object["error_file"] = text_or_null(failure.error_file);
  object["log_file"] = text_or_null(failure.log_file);
  object["last_lines"] = failure.last_lines;
  return object;
}

ordered_json to_json(const std::vector<rendezvous::WorkerFailure>& failures) {
  ordered_json list = ordered_json::array();
  for (const auto& failure : failures) list.push_back(to_json(failure));
  return list;
}

ordered_json to_json(const WorkerRecord& worker) {
  ordered_json object;
  object["rank"] = worker.rank;
  object["local_rank"] = worker.local_rank;
  object["pid"] = worker.pid;
  object["started_at"] = time_or_null(worker.started_at);
  object["ended_at"] = time_or_null(worker.ended_at);
  object["exit_code"] = code_or_null(worker.exit_code, worker.signal, worker.ended_at > 0);
  object["signal"] = signal_or_null(worker.signal);
  object["stopped_by_tprun"] = worker.stopped_by_us;
  object["stdout_log"] = text_or_null(worker.stdout_log);
  object["stderr_log"] = text_or_null(worker.stderr_log);
  return object;
}

ordered_json to_json(const RestartTimes& times) {
  ordered_json object;
  object["stopping_ms"] = times.stopping_ms;
  object["rendezvous_ms"] = times.rendezvous_ms;
  object["spawning_ms"] = times.spawning_ms;
  object["first_store_use_ms"] = times.first_store_use_ms ? ordered_json(*times.first_store_use_ms) : ordered_json();
  return object;
}

ordered_json to_json(const AttemptRecord& attempt) {
  ordered_json object;
  object["round"] = attempt.round;
  object["restart_count"] = attempt.restart_count;
  object["world_size"] = attempt.world_size;
  object["group_rank"] = attempt.group_rank;
  object["group_world_size"] = attempt.group_world_size;
  object["started_at"] = time_or_null(attempt.started_at);
  object["ended_at"] = time_or_null(attempt.ended_at);
  object["ended_because"] = text_or_null(attempt.ended_because);
  object["restart"] = attempt.restart ? to_json(*attempt.restart) : ordered_json();
  object["workers"] = ordered_json::array();
  for (const WorkerRecord& worker : attempt.workers) object["workers"].push_back(to_json(worker));
  object["failures"] = to_json(attempt.failures);
  return object;
}

const rendezvous::WorkerFailure* root_cause(const RunReport& report) {
  return report.finish && report.finish->root_cause ? &*report.finish->root_cause : nullptr;
}

const char* outcome(const RunReport& report) {
  if (report.stop_signal != 0) return "stopped";
  return report.exit_code == 0 ? "succeeded" : "failed";
}

}  // namespace

std::string exit_code_owner(const RunReport& report) {
  if (report.stop_signal != 0) return rendezvous::signal_name(report.stop_signal) + ", sent to tprun";
  if (report.exit_code == 0) return "all workers ended well";
  if (report.exit_code == exit_code::kNoProgress && report.finish && report.finish->exit_code == report.exit_code) {
    const auto* cause = root_cause(report);
    const int own = cause != nullptr ? rendezvous::exit_code_of(*cause) : report.exit_code;
    if (own != report.exit_code)
      return "no progress; rank " + std::to_string(cause->rank) + "'s own is " + std::to_string(own);
  }
  if (const auto* cause = root_cause(report)) {
    const std::string owner = "rank " + std::to_string(cause->rank) + "'s";
    const int own = rendezvous::exit_code_of(*cause);
    if (own == report.exit_code) return owner;
    return "as torchrun gives it; " + owner + " own is " + std::to_string(own);
  }
  if (report.exit_code == exit_code::kRendezvousFailed) return "the nodes did not come together";
  if (report.exit_code == exit_code::kUsage) return "the command line is wrong";
  return "tprun's own";
}

std::string to_json_text(const RunReport& report) {
  const auto* cause = root_cause(report);
  ordered_json object;
  object["format"] = 1;
  object["run_id"] = report.run_id;
  object["program"] = report.program;
  object["host"] = report.host;
  object["outcome"] = outcome(report);
  object["exit_code"] = report.exit_code;
  object["exit_code_from"] = exit_code_owner(report);
  const bool is_workers = cause != nullptr && report.exit_code != 0 && report.stop_signal == 0;
  object["exit_code_rank"] = is_workers ? ordered_json(cause->rank) : ordered_json();
  object["stop_signal"] = signal_or_null(report.stop_signal);
  object["started_at"] = time_or_null(report.started_at);
  object["ended_at"] = time_or_null(report.ended_at);
  object["max_restarts"] = report.max_restarts;
  object["restarts"] = report.attempts.empty() ? 0 : report.attempts.back().restart_count;
  object["log_folder"] = text_or_null(report.log_folder);
  object["why"] = report.finish ? text_or_null(report.finish->why) : ordered_json();
  object["root_cause"] = cause != nullptr ? to_json(*cause) : ordered_json();
  object["failures"] = report.finish ? to_json(report.finish->failures) : ordered_json::array();
  object["more_failures"] = report.finish ? report.finish->more_failures : 0;
  object["attempts"] = ordered_json::array();
  for (const AttemptRecord& attempt : report.attempts) object["attempts"].push_back(to_json(attempt));
  // Words of workers may be any bytes: they must not be able to spoil the report.
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void write_run_report(const std::string& path, const RunReport& report) {
  write_file_atomically(path, to_json_text(report));
}

}  // namespace tensorplay::agent
