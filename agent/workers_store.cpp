#include "agent/workers_store.hpp"

#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <cerrno>
#include <cstring>

namespace tensorplay::agent {
namespace {

/// Bound with SO_REUSEADDR and not listening: Linux then lets a worker bind the same port with SO_REUSEADDR, as every
/// TCPStore does, and gives it to nobody who asks for any port.
base::UniqueFd reserve(const std::string& host, std::uint16_t port) {
  std::string reason = "no address";
  for (const auto& address : base::SocketAddress::resolve(host, port)) {
    base::UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    if (fd && ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        ::bind(fd.get(), address.data(), address.size()) == 0) {
      return fd;
    }
    reason = std::strerror(errno);
  }
  throw distributed::SocketError("cannot reserve " + base::format_host_port(host, port) + ": " + reason);
}

}  // namespace

WorkersStore::WorkersStore(const LaunchPlan& plan) : is_shared_(plan.shares_agent_store) {
  store::TCPStoreServerOptions options;
  options.run_id = plan.rdzv.run_id;
  if (is_shared_) {
    options.host = plan.master_addr;
    options.port = plan.master_port;
  } else {
    reserved_ = reserve(plan.master_addr, plan.master_port);
    port_ = base::SocketAddress::of_local_end(reserved_.get()).port();
  }
  server_.emplace(std::move(options));
  if (is_shared_) port_ = server_->port();
}

void WorkersStore::begin_round() {
  server_->begin_round();
}

std::optional<std::chrono::steady_clock::time_point> WorkersStore::first_use() const {
  return is_shared_ ? server_->first_use() : std::nullopt;
}

}  // namespace tensorplay::agent
