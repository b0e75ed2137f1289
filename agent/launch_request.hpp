/// From what the user said to what is to be done: command line, then TPRUN_*, then PET_*, then the configuration file,
/// then the scheduler, then the default. Deterministic but for the run id it draws; everything about the machine is
/// asked through Machine, so the same inputs on a made-up machine give the same plan.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/launch_plan.hpp"
#include "agent/machine.hpp"

#include <string>
#include <vector>

namespace tensorplay::agent {

enum class Action { kLaunch, kRelay, kDryRun, kDryRunJson, kHelp, kVersion, kPrintCompletion };

struct LaunchInputs {
  std::vector<std::string> argv;  ///< All of it; argv[0] decides the front.
  EnvironmentView environment;
  const Machine& machine;
};

struct LaunchRequest {
  Action action = Action::kLaunch;
  std::string shell;  ///< kPrintCompletion: for which shell.
  LaunchPlan plan;    ///< kLaunch and the dry runs.
};

/// The front that a program name stands for: "/usr/bin/torchrun" is kTorchrun.
Front front_of(const std::string& program_name);

/// The name of a front, for texts.
const char* front_name(Front front);

/// Throws UsageError for anything that cannot be done as written.
LaunchRequest read_launch_request(const LaunchInputs& inputs);

}  // namespace tensorplay::agent
