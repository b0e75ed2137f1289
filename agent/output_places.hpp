/// Where tprun itself will write: log folder and report. Looked at before anything is started, so that a name that
/// cannot be used costs a line and not the day's work.
#pragma once

#include "agent/launch_plan.hpp"

namespace tensorplay::agent {

/// Makes the log folder where one is wanted, and tries what will be done there and beside the report file; leaves
/// nothing else behind. Throws UsageError with the option and what is wrong.
void check_output_places(const LaunchPlan& plan);

}  // namespace tensorplay::agent
