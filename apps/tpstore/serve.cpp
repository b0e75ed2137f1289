#include "apps/tpstore/serve.hpp"

#include "runtime/base/socket.hpp"
#include "runtime/store/tcp_store_server.hpp"

#include <csignal>
#include <cstdio>
#include <pthread.h>

namespace tpstore {

int run_serve(const Arguments& arguments) {
  // Blocked before the server's thread starts, so that it inherits the mask and only sigwait sees them.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stop_signals, signal);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);

  tensorplay::store::TCPStoreServerOptions options;
  if (!arguments.host.empty()) options.host = arguments.host;
  options.port = arguments.port;
  const std::string host = options.host;
  const tensorplay::store::TCPStoreServer server(std::move(options));
  std::printf("tpstore: serving at %s\n", tensorplay::base::format_host_port(host, server.port()).c_str());
  std::fflush(stdout);
  int received = 0;
  sigwait(&stop_signals, &received);
  return exit_code::kSuccess;
}

}  // namespace tpstore
