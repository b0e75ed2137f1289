/// The process in front of a guardian where strangers' processes may fall to the pid the user sees: it passes signals
/// on, reaps, and ends as the guardian ended. It signals nobody else.
#pragma once

#include <set>

#include <sys/types.h>

namespace tensorplay::agent {

/// True when this process has children that are not ours, or may be handed a stranger's: it was a shell before (`sleep
/// & exec tprun`), or is a container's pid 1.
bool strangers_may_fall_to_us();

/// Passes `signals` (blocked, SIGCHLD among them) on to the guardian until it has ended. Returns the exit code, or ends
/// by the guardian's signal.
int relay_to_guardian(pid_t guardian, const std::set<int>& signals);

}  // namespace tensorplay::agent
