/// The mailbox of the process that hosts the store: the queues of the server's agents' table, reached without a socket.
#pragma once

#include "rendezvous/mailbox.hpp"
#include "runtime/store/tcp_store_server.hpp"

#include <map>
#include <mutex>

namespace tensorplay::rendezvous {

/// Mail that this process posts wakes its own readers directly: on one node no other thread is woken for it.
class ServerMailbox final : public Mailbox {
 public:
  /// `server` must outlive it. `has_remote_agents`: mail may come over the network too.
  ServerMailbox(store::TCPStoreServer& server, bool has_remote_agents);

  void post(const std::string& queue, const std::string& text) override;
  std::optional<std::string> take(const std::string& queue) override;
  void watch(const std::string& queue, std::function<void()> on_mail) override;

 private:
  store::TCPStoreServer& server_;
  const bool has_remote_agents_;
  std::mutex mutex_;
  std::map<std::string, std::function<void()>> watchers_;
};

}  // namespace tensorplay::rendezvous
