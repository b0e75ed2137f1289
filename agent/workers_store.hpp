/// The store that workers meet in, at MASTER_ADDR:MASTER_PORT. Every agent has a port for it before it joins, so that
/// nothing can be stolen between choosing and binding; the agent that holds RANK 0 serves it there.
#pragma once

#include "agent/launch_plan.hpp"
#include "runtime/base/fd.hpp"
#include "runtime/store/tcp_store_server.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// On one node it is one server with the queues of agent and leader, on the plan's master address. On many it is at all
/// addresses of this host, and where this agent also hosts the agents' store, one server with that. When workers do not
/// share it (TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1) the port is only held for RANK 0: bound, so that nobody else is
/// given it, and not listened on, so that RANK 0 can. Thread rules: loop thread.
class WorkersStore {
 public:
  /// Throws SocketError when the address cannot be had.
  explicit WorkersStore(const LaunchPlan& plan);

  /// This agent hosts the agents' store: its server, null when it does no longer. Throws SocketError.
  void use_host(store::TCPStoreServer* host);

  std::uint16_t port() const { return port_; }              ///< MASTER_PORT, when this agent holds RANK 0.
  store::TCPStoreServer& own_server() { return *server_; }  ///< On one node.

  /// This agent holds RANK 0 in the round that begins; its store is for workers at these addresses (empty: all).
  void serve(std::vector<std::string> member_addresses);

  /// Nothing of the last round can be read or written from here on.
  void begin_round();

  /// When a worker first used it in this round.
  std::optional<std::chrono::steady_clock::time_point> first_use() const;

 private:
  store::TCPStoreServer* in_use() const { return host_ != nullptr ? host_ : server_.get(); }

  const LaunchPlan& plan_;
  const bool is_alone_;
  store::TCPStoreServer* host_ = nullptr;
  base::UniqueFd bound_;  ///< On many nodes: waits for its server, or is held for RANK 0.
  std::unique_ptr<store::TCPStoreServer> server_;
  std::uint16_t port_ = 0;
};

}  // namespace tensorplay::agent
