/// The meeting of one node: leader and agent sit in one process and speak through the store's queues, without a socket.
#pragma once

#include "agent/meeting.hpp"
#include "rendezvous/leader.hpp"
#include "rendezvous/server_mailbox.hpp"

#include <asio/io_context.hpp>

#include <optional>

namespace tensorplay::agent {

class LoneMeeting final : public Meeting {
 public:
  /// The server must outlive it.
  LoneMeeting(asio::io_context& loop, store::TCPStoreServer& server, const rendezvous::MembershipOptions& options,
              std::function<void(const rendezvous::Note&)> on_note);

  void listen(Callbacks callbacks) override { callbacks_ = std::move(callbacks); }
  void join(const rendezvous::AgentId& agent) override;
  void post(const rendezvous::Report& report) override;
  void leave(bool is_the_end_of_all, std::function<void()> done) override;

 private:
  asio::io_context& loop_;
  rendezvous::ServerMailbox mailbox_;
  rendezvous::Leader leader_;
  std::optional<rendezvous::MailReader> orders_;
  Callbacks callbacks_;
};

}  // namespace tensorplay::agent
