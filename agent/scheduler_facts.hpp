/// What is known of the batch scheduler tprun runs under, as far as one node's plan depends on it.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/machine.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace tensorplay::agent {

struct SchedulerFacts {
  std::string name;                                    ///< "slurm"; empty: none.
  std::optional<std::chrono::milliseconds> kill_wait;  ///< From its first signal to its SIGKILL.
};

/// Reads the environment, and the scheduler's configuration where that is a plain file. `choice` is --scheduler's
/// value.
SchedulerFacts find_scheduler_facts(const EnvironmentView& environment, const Machine& machine,
                                    std::string_view choice);

}  // namespace tensorplay::agent
