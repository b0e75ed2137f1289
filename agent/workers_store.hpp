/// The store that workers meet in, at MASTER_ADDR:MASTER_PORT, and the queues through which agent and leader speak.
#pragma once

#include "agent/launch_plan.hpp"
#include "runtime/base/fd.hpp"
#include "runtime/store/tcp_store_server.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace tensorplay::agent {

/// One server for both, on the plan's master address. When workers do not share it
/// (TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1) it is loopback's business, and the workers' port is only held for RANK 0:
/// bound, so that nobody else is given it, and not listened on, so that RANK 0 can. Thread rules: loop thread.
class WorkersStore {
 public:
  /// Throws SocketError when the address cannot be had.
  explicit WorkersStore(const LaunchPlan& plan);

  std::uint16_t port() const { return port_; }  ///< MASTER_PORT.
  store::TCPStoreServer& server() { return *server_; }

  /// Nothing of the last round can be read or written from here on.
  void begin_round();

  /// When a worker first used it in this round.
  std::optional<std::chrono::steady_clock::time_point> first_use() const;

 private:
  bool is_shared_;
  std::optional<store::TCPStoreServer> server_;
  base::UniqueFd reserved_;
  std::uint16_t port_ = 0;
};

}  // namespace tensorplay::agent
