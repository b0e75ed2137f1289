/// The moment people judge a launcher by: one text that names the root cause first, then who else ended and how, the
/// root cause's last lines, and whose exit code they are about to see. Pure text from facts: no I/O.
#pragma once

#include "agent/run_report.hpp"

#include <string>

namespace tensorplay::agent {

struct ReportStyle {
  bool colour = false;  ///< Only when stderr is a terminal.
  int width = 100;      ///< Columns; the log paths alone may be longer, as people copy them.
};

/// The report of a run that failed, ending with a newline; empty when `report.finish` holds no failure.
std::string render_failure_report(const RunReport& report, const ReportStyle& style);

/// How a worker ended, in two or three words for a table: "SIGSEGV", "exit code 1", "SIGKILL (out of memory)",
/// "stopped by tprun", "connection closed".
std::string end_in_brief(const rendezvous::WorkerFailure& failure);

}  // namespace tensorplay::agent
