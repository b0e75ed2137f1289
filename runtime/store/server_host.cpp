#include "runtime/store/server_host.hpp"

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <fstream>
#include <map>
#include <mutex>

namespace tensorplay::store {
namespace {

using distributed::TCPStoreOptions;

/// The servers of this process that may be shared, by port.
struct SharedServers {
  std::mutex mutex;
  std::map<std::uint16_t, std::weak_ptr<TCPStoreServer>> by_port;

  static SharedServers& instance() {
    static SharedServers servers;
    return servers;
  }
};

std::shared_ptr<TCPStoreServer> start_server(const TCPStoreOptions& options) {
  TCPStoreServerOptions server_options;
  server_options.host = bind_address_for(options.host);
  server_options.port = options.port;
  if (options.listen_fd >= 0) server_options.listen_fd = base::UniqueFd(options.listen_fd);
  return std::make_shared<TCPStoreServer>(std::move(server_options));
}

std::shared_ptr<TCPStoreServer> share_server(const TCPStoreOptions& options) {
  auto& shared = SharedServers::instance();
  const std::lock_guard lock(shared.mutex);
  if (options.port != 0) {
    const auto found = shared.by_port.find(options.port);
    if (found != shared.by_port.end()) {
      if (auto server = found->second.lock()) return server;
    }
  }
  auto server = start_server(options);
  shared.by_port[server->port()] = server;
  return server;
}

void warn_of_small_backlog(const TCPStoreOptions& options) {
  int backlog = 0;
  std::ifstream("/proc/sys/net/core/somaxconn") >> backlog;
  if (backlog > 0 && options.world_size && *options.world_size > backlog) {
    base::log::warning("store on port " + std::to_string(options.port) + ": net.core.somaxconn is " +
                       std::to_string(backlog) + ", less than the world of " + std::to_string(*options.world_size) +
                       "; connecting may be slow, raise it with sysctl");
  }
}

}  // namespace

std::shared_ptr<TCPStoreServer> host_server(const TCPStoreOptions& options) {
  warn_of_small_backlog(options);
  try {
    return options.multi_tenant ? share_server(options) : start_server(options);
  } catch (const distributed::SocketError& error) {
    if (!is_agent_store_port(options.port)) throw;
    base::log::info([&] {
      return std::string(error.what()) + "; using the launcher's store on port " + std::to_string(options.port);
    });
    return nullptr;
  }
}

std::string bind_address_for(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  const bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
  if ((is_number && host.starts_with("127.")) || host == "::1") return host;
  return "::";
}

bool is_agent_store_port(std::uint16_t port) {
  const auto flag = base::env_value(base::env::kUseAgentStore);
  if (!flag || (*flag != "True" && *flag != "true" && *flag != "1")) return false;
  return base::env_value(base::env::kMasterPort) == std::to_string(port);
}

}  // namespace tensorplay::store
