/// A host that is known by a record it has left: who it says it is, and whether its store answers.
#pragma once

#include "rendezvous/discovery/discovery.hpp"
#include "rendezvous/discovery/greeting.hpp"
#include "rendezvous/discovery/host_file.hpp"
#include "rendezvous/discovery/interrupt.hpp"

#include <string>
#include <vector>

namespace tensorplay::rendezvous {

struct Meeting {
  Finding finding;
  std::string address;      ///< Where the store answered.
  bool is_refused = false;  ///< Its machine says that nobody listens.
};

/// Greets the store of epoch `epoch` that the record names, at each of its addresses that may lead there. What answers
/// at one of them and is not that store counts as nobody: the address may be another machine's here, or the port
/// another program's now. Throws Cancelled.
Meeting greet_recorded(const HostRecord& record, std::uint64_t epoch, const GreetingOptions& options,
                       const Interrupt& interrupt, distributed::Deadline deadline);

/// What this host tells others to connect to, the best first: --local-addr, then its interfaces' addresses. None when
/// the job is alone. Throws Cancelled.
std::vector<std::string> addresses_for_others(const DiscoveryOptions& options, const Interrupt& interrupt);

/// A listener on all of this host's addresses, or on loopback when the job is alone. Throws DistStoreError.
base::UniqueFd listen_for_others(const DiscoveryOptions& options);

/// "n1 (port 4711)"
std::string name_of(const HostRecord& record);

}  // namespace tensorplay::rendezvous
