/// tprun --hosts: starts a tprun on each host, brings their output back line by line, and stops all when the world
/// cannot go on or when it is told to stop.
#pragma once

#include "agent/launch_plan.hpp"

#include <string>
#include <vector>

namespace tensorplay::agent {

/// `words` is tprun's own command line. Returns the exit code: that of the first tprun that failed, 75 when a host
/// cannot be reached; ends by the signal that stopped it.
int run_on_hosts(const LaunchPlan& plan, const std::vector<std::string>& words);

}  // namespace tensorplay::agent
