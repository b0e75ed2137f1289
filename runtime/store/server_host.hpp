/// How a process comes to host a TCPStore server: binding, sharing one server between stores of a port, and stepping
/// back where the launcher's own server holds the port.
#pragma once

#include "runtime/store/tcp_store_server.hpp"
#include "tensorplay/distributed/tcp_store.hpp"

#include <memory>

namespace tensorplay::store {

/// The server for a store that wants to host, or null where the launcher's server has the port already. Takes over
/// `options.listen_fd`. Throws SocketError when the address cannot be had.
std::shared_ptr<TCPStoreServer> host_server(const distributed::TCPStoreOptions& options);

/// What to bind so that peers who are told `host` reach it: loopback stays loopback, all else is every address, since
/// a name may mean one thing here (/etc/hosts) and another on the peer's machine.
std::string bind_address_for(const std::string& host);

/// Whether the launcher has said that its own server on `port` is the one to use.
bool is_agent_store_port(std::uint16_t port);

}  // namespace tensorplay::store
