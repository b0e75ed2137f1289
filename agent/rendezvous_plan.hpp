/// Where and under which name the nodes meet, as decided from the options. Part of reading a launch request.
#pragma once

#include "agent/launch_plan.hpp"
#include "agent/machine.hpp"
#include "agent/scheduler/facts.hpp"
#include "agent/settings.hpp"

namespace tensorplay::agent {

/// Fills in rdzv, node_rank, master_addr, master_port and local_addr; the numbers of nodes must be there already.
///
/// A job on one node that names neither a port nor an endpoint takes a free port and a fresh run id by itself, as
/// torchrun does; unlike torchrun it keeps a run id that was given. Without a rendezvous option the nodes that
/// `scheduler` knows of meet on the first of them.
void plan_rendezvous(const Settings& settings, const Machine& machine, const SchedulerFacts& scheduler,
                     LaunchPlan& plan);

}  // namespace tensorplay::agent
