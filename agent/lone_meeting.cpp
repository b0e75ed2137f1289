#include "agent/lone_meeting.hpp"

#include <asio/post.hpp>

namespace tensorplay::agent {

LoneMeeting::LoneMeeting(asio::io_context& loop, store::TCPStoreServer& server,
                         const rendezvous::MembershipOptions& options,
                         std::function<void(const rendezvous::Note&)> on_note)
    : loop_(loop), mailbox_(server, false), leader_(loop, mailbox_, options, std::move(on_note)) {}

void LoneMeeting::join(const rendezvous::AgentId& agent) {
  orders_.emplace(loop_, mailbox_, rendezvous::orders_queue(agent), callbacks_.on_order);
  asio::post(loop_, [this] {
    if (callbacks_.on_met) callbacks_.on_met({.is_store_host = true, .local_address = {}, .epoch = 0});
  });
}

void LoneMeeting::post(const rendezvous::Report& report) {
  mailbox_.post(rendezvous::kInbox, rendezvous::encode(report));
}

void LoneMeeting::leave(bool, std::function<void()> done) {
  callbacks_ = {};
  done();
}

}  // namespace tensorplay::agent
