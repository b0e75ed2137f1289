/// How much of what the scheduler tells is used: what the user says wins, and whoever names a rendezvous needs none.
/// Part of reading a launch request. Cores without I/O but for what Machine reads.
#pragma once

#include "agent/launch_plan.hpp"
#include "agent/scheduler/facts.hpp"
#include "agent/settings.hpp"

#include <optional>
#include <string_view>

namespace tensorplay::agent {

/// An option, or its variable, that says how the nodes meet: backend, endpoint, --standalone, node rank, master.
bool gives_rendezvous(const Settings& settings);

/// What the scheduler knows, as far as it may be used: nothing with a rendezvous option (unless --scheduler names one)
/// or for a job that is meant to be on one node. `choice` is --scheduler's value.
SchedulerFacts choose_scheduler_facts(const Settings& settings, const Surroundings& around, std::string_view choice);

/// What --hosts and --hostfile make of the plan: its hosts, and the facts of the first one. On a host that they have
/// started only the latter, as told by --host-member; there
/// --hosts is refused, and that of a file or a variable ignored. nullopt without either. Throws UsageError.
std::optional<SchedulerFacts> choose_host_facts(const Settings& settings, const Surroundings& around, LaunchPlan& plan);

/// The number of nodes where the user gives none; else a check that there are that many, and a range cut to what there
/// is. Also plan.scheduler, and the hint among the notes.
void fit_nodes_to_scheduler(const Settings& settings, const SchedulerFacts& facts, LaunchPlan& plan);

}  // namespace tensorplay::agent
