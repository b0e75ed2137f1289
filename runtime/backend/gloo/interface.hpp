/// By which address this rank lets the others reach it.
#pragma once

#include "runtime/base/host.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::distributed {

/// Pure. The address to bind and to tell the others:
/// - `wanted` (GLOO_SOCKET_IFNAME) names interfaces, comma-separated, the first that is up wins; a leading ^ means
/// every
///   interface but those;
/// - otherwise loopback when all ranks share a host, and else the best address that is not loopback, `towards` (the
///   address from which the store's host is reached; empty when unknown) before all.
/// A loopback address is never chosen when the group spans hosts: DistBackendError says what there is instead.
std::string choose_address(const std::vector<base::InterfaceAddress>& addresses, std::string_view wanted,
                           bool is_single_host, std::string_view towards);

/// The local address from which `host` is reached, by the routing table alone; empty when it is loopback or unknown.
std::string address_towards(const std::string& host);

}  // namespace tensorplay::distributed
