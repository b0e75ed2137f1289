/// --dry-run: the plan as people and as programs read it. Cores: a plan in, text out.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/launch_plan.hpp"

#include <string>

namespace tensorplay::agent {

/// What would be run and why, the settings that matter, and each worker's command and variables.
std::string dry_run_text(const LaunchPlan& plan, const EnvironmentView& environment);

/// One JSON object: min_nodes, max_nodes, nproc_per_node, node_rank, rdzv_backend, rdzv_endpoint, rdzv_id,
/// max_restarts, and more of the plan; `workers` is a list of {local_rank, argv, env}, env being what tprun adds as far
/// as it is known before the rendezvous.
std::string dry_run_json(const LaunchPlan& plan, const EnvironmentView& environment);

/// A command as a shell would need it typed.
std::string shell_quoted(const std::vector<std::string>& words);

}  // namespace tensorplay::agent
