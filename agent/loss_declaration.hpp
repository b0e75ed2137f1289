/// A guardian's last service to its agent: it tells the store's host that the agent is dead and no process of it is
/// left, so that the others need not wait for the lease to end.
#pragma once

#include "agent/guardian.hpp"
#include "tensorplay/distributed/deadline.hpp"

#include <memory>

namespace tensorplay::store {
class Authenticator;
}

namespace tensorplay::agent {

/// Blocks until the deadline at most. Throws DistError when the host was not told; the lease tells it later.
void declare_lost(const AgentLease& lease, const store::Authenticator* authenticator, distributed::Deadline deadline);

}  // namespace tensorplay::agent
