#include "agent/workers_store.hpp"

#include "runtime/base/host.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <cerrno>
#include <cstring>

namespace tensorplay::agent {
namespace {

constexpr const char* kEverywhere = "::";

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

base::UniqueFd reserve_everywhere() {
  try {
    return reserve(kEverywhere, 0);
  } catch (const distributed::SocketError&) {
    return reserve("0.0.0.0", 0);  // no IPv6 here
  }
}

std::uint16_t port_of(const base::UniqueFd& fd) {
  return base::SocketAddress::of_local_end(fd.get()).port();
}

}  // namespace

WorkersStore::WorkersStore(const LaunchPlan& plan) : plan_(plan), is_alone_(plan.max_nodes == 1) {
  if (!is_alone_) return;
  store::TCPStoreServerOptions options;
  options.run_id = plan.rdzv.run_id;
  if (plan.shares_agent_store) {
    options.host = plan.master_addr;
    options.port = plan.master_port;
  } else {
    bound_ = reserve(plan.master_addr, plan.master_port);
    port_ = port_of(bound_);
  }
  server_ = std::make_unique<store::TCPStoreServer>(std::move(options));
  if (plan.shares_agent_store) port_ = server_->port();
}

void WorkersStore::use_host(store::TCPStoreServer* host) {
  host_ = host;
  if (!plan_.shares_agent_store) {
    if (!bound_) bound_ = reserve_everywhere();
    port_ = port_of(bound_);
  } else if (host_ != nullptr) {
    server_.reset();
    bound_.reset();
    port_ = host_->port();
  } else if (server_ == nullptr) {
    // It listens from now on: what connects before the order to serve has come here is served then.
    if (!bound_) bound_ = base::listen_on(kEverywhere, 0);
    port_ = port_of(bound_);
  }
}

void WorkersStore::serve(std::vector<std::string> member_addresses) {
  if (is_alone_ || !plan_.shares_agent_store) return;
  if (in_use() == nullptr) {
    store::TCPStoreServerOptions options;
    options.listen_fd = std::move(bound_);
    options.run_id = plan_.rdzv.run_id;
    server_ = std::make_unique<store::TCPStoreServer>(std::move(options));
  }
  if (!member_addresses.empty()) {
    // This host is a member, by whatever name its workers call it.
    for (const char* own : {"127.0.0.1", "::1"}) member_addresses.emplace_back(own);
    for (const auto& own : base::interface_addresses()) member_addresses.push_back(own.address);
  }
  in_use()->allow_hosts(std::move(member_addresses));
}

void WorkersStore::begin_round() {
  if (auto* server = in_use()) server->begin_round();
}

std::optional<std::chrono::steady_clock::time_point> WorkersStore::first_use() const {
  const auto* server = in_use();
  return server != nullptr && plan_.shares_agent_store ? server->first_use() : std::nullopt;
}

}  // namespace tensorplay::agent
