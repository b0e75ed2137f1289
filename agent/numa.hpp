/// Which CPUs each worker is bound to, near its GPU. A core over Machine: reads sysfs, binds nothing.
#pragma once

#include "agent/launch_plan.hpp"
#include "agent/machine.hpp"

#include <string>
#include <vector>

namespace tensorplay::agent {

/// One ascending list of CPUs for each local rank. `devices` are the visible GPUs' PCI addresses; worker k's GPU is the
/// k-th. Only CPUs that this process may use are given out. Throws UsageError, beginning with `where`, when there are
/// fewer GPUs than workers, a GPU's place is unknown, or nothing is left to bind to.
std::vector<std::vector<int>> bind_workers(const std::string& where, NumaBinding kind, int workers,
                                           const std::vector<std::string>& devices, const Machine& machine);

/// "0-3,8,10-11" as the kernel writes CPU lists; what is not a number is skipped.
std::vector<int> parse_cpu_list(std::string_view text);

/// The other way.
std::string format_cpu_list(const std::vector<int>& cpus);

}  // namespace tensorplay::agent
