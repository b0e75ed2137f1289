/// Options given by environment variables: TPRUN_<NAME> for every option, PET_<NAME> for those torchrun reads. A core.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/launch_plan.hpp"
#include "agent/settings.hpp"

#include <string>
#include <vector>

namespace tensorplay::agent {

/// "NPROC_PER_NODE" for nproc-per-node.
std::string variable_name(const OptionSpec& spec);

/// Adds what the environment says. A set but empty variable is a value, as for torchrun. A TPRUN_ variable that names
/// no option is noted, since it is a spelling mistake; foreign PET_ variables are nobody's business.
void read_environment_settings(const EnvironmentView& environment, Front front, Settings& settings,
                               std::vector<std::string>& notes);

}  // namespace tensorplay::agent
