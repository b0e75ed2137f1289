/// From the plan to what discovery has to know, and the job's secret.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/launch_plan.hpp"

namespace tensorplay::agent {

/// Fills in the secret from --rdzv-token-file, else from TPRUN_RDZV_TOKEN. Throws UsageError for one that cannot serve.
void load_secret(const EnvironmentView& environment, RendezvousPlan& rdzv);

/// For this host and user. `ask_scheduler` is the caller's to add.
rendezvous::DiscoveryOptions discovery_options(const LaunchPlan& plan);

}  // namespace tensorplay::agent
