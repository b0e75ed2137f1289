/// Who and where this process is: host names, host identity, addresses, user. Nothing here asks DNS, NIS or LDAP, so
/// nothing here blocks.
/// Thread rules: every function may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::base {

/// The kernel's host name up to its first dot.
std::string short_host_name();

/// The fully qualified name as far as this machine knows it by itself: the kernel's host name if it has a dot, else
/// the first dotted name that /etc/hosts lists beside it, else the kernel's name as it is.
std::string full_host_name();

/// The name with a dot that a hosts(5) text lists for `host`; empty when there is none. "localhost.*" does not count.
std::string find_full_name(std::string_view hosts_file, std::string_view host);

/// Differs after each boot; empty where /proc does not tell.
std::string boot_id();

/// Equal for two processes when they are on the same boot of the same machine and in the same network namespace: the
/// loopback address of one then reaches the other.
std::string host_identity();

struct InterfaceAddress {
  std::string interface;  ///< "eth0"
  std::string address;    ///< Numeric, a link-local IPv6 one with its scope: "fe80::1%eth0".
  bool is_ipv6 = false;
  bool is_loopback = false;
  bool is_link_local = false;

  bool operator==(const InterfaceAddress&) const = default;
};

/// The addresses of all interfaces that are up, those best suited to be told to other hosts first: global IPv4, global
/// IPv6, link-local, loopback. In each class real interfaces come before bridges made for containers and virtual
/// machines (docker0, virbr0, ...), whose addresses are the same on every host. Throws SocketError.
std::vector<InterfaceAddress> interface_addresses();

/// The order described above; the order within a class is kept.
void sort_best_first(std::vector<InterfaceAddress>& addresses);

/// The name of the effective user: as /etc/passwd has it, else $USER or $LOGNAME, else "uid1000".
std::string current_user();

/// The name that a passwd(5) text has for `uid`; empty when there is none.
std::string find_user_name(std::string_view passwd_file, std::uint32_t uid);

}  // namespace tensorplay::base
