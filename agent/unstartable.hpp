/// A program of which it is known, before anything is tried, that it cannot be started. No agent is made for it; the
/// run's report is this. A core without I/O.
#pragma once

#include "agent/launch_plan.hpp"
#include "agent/run_report.hpp"

#include <string>

namespace tensorplay::agent {

/// The report of such a run: a start-up failure of this node's first worker, with a shell's exit code (1 under the name
/// torchrun). The plan's startup_errno must be set; `now` is Unix time in seconds.
RunReport report_unstartable(const LaunchPlan& plan, const std::string& host, double now);

}  // namespace tensorplay::agent
