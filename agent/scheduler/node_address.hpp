/// The addresses of hosts whose names the resolver does not know, as the batch scheduler knows them. SLURM names its
/// nodes itself; at the edge of many a cluster no DNS has those names.
#pragma once

#include "agent/environment_view.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

/// The values of NodeAddr and NodeHostName in what `scontrol -o show node` prints, each once, but for `name` itself,
/// which was no help. A core.
std::vector<std::string> addresses_in_scontrol(std::string_view printed, std::string_view name);

/// Asks scontrol, as a child process with a deadline and without a shell. Empty when it does not know, cannot be run or
/// does not answer in five seconds. Blocks; any thread.
std::vector<std::string> ask_slurm(const std::string& name);

/// Whom to ask inside the job that `environment` tells of; empty outside of SLURM.
std::function<std::vector<std::string>(const std::string& host)> name_source(const EnvironmentView& environment);

}  // namespace tensorplay::agent
