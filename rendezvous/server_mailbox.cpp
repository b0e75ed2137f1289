#include "rendezvous/server_mailbox.hpp"

namespace tensorplay::rendezvous {

ServerMailbox::ServerMailbox(store::TCPStoreServer& server, bool has_remote_agents)
    : server_(server), has_remote_agents_(has_remote_agents) {}

void ServerMailbox::post(const std::string& queue, const std::string& text) {
  server_.push(queue, text);
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    const auto found = watchers_.find(queue);
    if (found != watchers_.end()) wake = found->second;
  }
  if (wake) wake();
}

std::optional<std::string> ServerMailbox::take(const std::string& queue) {
  return server_.try_pop(queue);
}

void ServerMailbox::watch(const std::string& queue, std::function<void()> on_mail) {
  if (has_remote_agents_) server_.on_push(queue, on_mail);
  const std::lock_guard lock(mutex_);
  if (on_mail) {
    watchers_[queue] = std::move(on_mail);
  } else {
    watchers_.erase(queue);
  }
}

}  // namespace tensorplay::rendezvous
