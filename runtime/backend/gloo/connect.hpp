/// How the ranks of a mesh find and connect to each other.
#pragma once

#include "tensorplay/distributed/backend.hpp"
#include "tensorplay/distributed/deadline.hpp"

#include <memory>
#include <string>
#include <vector>

namespace gloo::transport {
class Context;
}

namespace tensorplay::distributed {

struct ConnectedMesh {
  std::shared_ptr<gloo::transport::Context> context;
  std::vector<std::string> hosts;      ///< Host name of each rank.
  std::vector<std::string> addresses;  ///< Where each rank listens for this one; empty for itself.
};

/// Exchanges host identities and addresses through the store, chooses the interface, and connects to every peer. For a
/// group of at least two. DistStoreError names the ranks whose addresses did not come by the deadline,
/// DistBackendError the one to which no connection could be made.
ConnectedMesh connect_mesh(const BackendOptions& options, Deadline deadline);

}  // namespace tensorplay::distributed
