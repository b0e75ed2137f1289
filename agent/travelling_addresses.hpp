/// Which of this host's addresses are told to the others. A core without I/O.
#pragma once

#include "runtime/base/host.hpp"

#include <string>
#include <vector>

namespace tensorplay::agent {

/// Best first: the one that --local-addr gives; the one by which this host reaches the store; those of its interfaces,
/// as sorted. IPv6 addresses with a zone mean something on this host only and stay here. Loopback addresses come last,
/// unless the store is reached by one, and are told to nobody where the world has several hosts.
std::vector<std::string> addresses_for_others(const std::string& local_addr, const std::string& on_the_way_to_the_store,
                                              const std::vector<base::InterfaceAddress>& interfaces);

}  // namespace tensorplay::agent
