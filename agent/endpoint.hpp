/// HOST:PORT as people write it for a rendezvous. A core without I/O; names are not resolved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensorplay::agent {

struct Endpoint {
  std::string host;                   ///< Without brackets; empty when only a port, or nothing, was written.
  std::optional<std::uint16_t> port;  ///< nullopt: not written.
  bool operator==(const Endpoint&) const = default;
};

/// "host", "host:29400", "[::1]:29400", "[10.0.0.1]:1", "::1" (an address without a port), ":29400", ":" or "". Throws
/// UsageError, beginning with `where`, for a port outside 0..65535 and for a host that cannot be one.
Endpoint parse_endpoint(const std::string& where, std::string_view text);

/// The other way: an IPv6 address is put in brackets.
std::string format_endpoint(const std::string& host, std::uint16_t port);

}  // namespace tensorplay::agent
