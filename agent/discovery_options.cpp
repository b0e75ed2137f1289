#include "agent/discovery_options.hpp"

#include "agent/scheduler/node_address.hpp"
#include "agent/usage_error.hpp"
#include "rendezvous/shared_secret.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/host.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <unistd.h>

namespace tensorplay::agent {

void load_secret(const EnvironmentView& environment, RendezvousPlan& rdzv) {
  try {
    if (!rdzv.token_file.empty()) {
      rdzv.secret = rendezvous::read_secret_file(rdzv.token_file);
    } else if (const auto token = environment.find_non_empty(base::env::kRdzvToken)) {
      rdzv.secret = rendezvous::check_secret(base::env::kRdzvToken, std::string(*token));
    }
  } catch (const distributed::InvalidArgument& error) {
    throw UsageError(rdzv.token_file.empty() ? error.what() : std::string("--rdzv-token-file: ") + error.what());
  }
}

rendezvous::DiscoveryOptions discovery_options(const LaunchPlan& plan) {
  rendezvous::DiscoveryOptions options;
  options.endpoints = plan.rdzv.endpoints;
  options.folder = plan.rdzv.folder;
  options.etcd_prefix = plan.rdzv.etcd_prefix;
  options.run_id = plan.rdzv.run_id;
  options.user = base::current_user();
  options.is_host = plan.rdzv.backend == "static" ? plan.node_rank == 0 : plan.rdzv.is_host;
  options.node_index = plan.rdzv.node_index;
  options.is_alone = plan.max_nodes == 1;
  options.local_addr = plan.local_addr;
  options.secret = plan.rdzv.secret;
  options.ask_scheduler = name_source(EnvironmentView(environ));
  return options;
}

}  // namespace tensorplay::agent
