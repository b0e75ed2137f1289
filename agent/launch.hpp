/// Carries a plan out: the one call that main makes.
#pragma once

#include "agent/launch_plan.hpp"

namespace tensorplay::agent {

/// Splits into guardian and agent, runs the job, and returns the exit code tprun must end with (or ends by the signal
/// that stopped it). Blocks until no process of the job is left. Call with one thread.
int run_launch(const LaunchPlan& plan);

}  // namespace tensorplay::agent
