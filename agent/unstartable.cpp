#include "agent/unstartable.hpp"

#include "tensorplay/distributed/exit_codes.hpp"

#include <cerrno>

namespace tensorplay::agent {

RunReport report_unstartable(const LaunchPlan& plan, const std::string& host, double now) {
  namespace exit_code = distributed::exit_code;
  rendezvous::WorkerFailure failure;
  failure.rank = 0;
  failure.local_rank = 0;
  failure.host = host;
  failure.exit_code = plan.program.startup_errno == ENOENT ? exit_code::kProgramNotFound : exit_code::kCannotExecute;
  failure.is_startup_failure = true;
  failure.ended_at = now;
  failure.message = plan.program.display_name + ": cannot be run: " + plan.program.reason;

  RunReport report;
  report.run_id = plan.rdzv.run_id;
  report.program = plan.program.display_name;
  report.host = host;
  report.max_restarts = plan.max_restarts;
  report.started_at = report.ended_at = now;
  report.exit_code = plan.front == Front::kTorchrun ? exit_code::kTorchrunFailure : failure.exit_code;
  report.finish = rendezvous::FinishOrder{};
  report.finish->exit_code = failure.exit_code;
  report.finish->why = failure.message;
  report.finish->root_cause = failure;
  report.finish->failures = {failure};
  return report;
}

}  // namespace tensorplay::agent
