/// The shell around the membership core: reads reports from the inbox, applies them, writes each order to the agents it
/// concerns, and keeps one timer. It runs in the process that hosts the store, so nobody else can write orders.
///
/// What reaches the inbox over the network ends with a line of the server's own, after the report: "from ADDRESS" for a
/// push, so that the leader knows an address its sender can be reached by; "lost CAUSE AGE" for a will, CAUSE being
/// silent, closed or declared and AGE the milliseconds since the agent was last heard.
#pragma once

#include "rendezvous/mailbox.hpp"
#include "rendezvous/membership.hpp"

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <functional>

namespace tensorplay::rendezvous {

/// Thread rules: the loop's thread. The mailbox must outlive it.
class Leader {
 public:
  /// `on_note` gets every line the core wants a person to know, in order.
  Leader(asio::io_context& loop, Mailbox& mailbox, MembershipOptions options, std::function<void(const Note&)> on_note);

  /// Something the store knows and no report says: an agent's will has fired.
  void apply(const Event& event);

  const Membership& membership() const { return membership_; }

 private:
  void read(const std::string& text);
  template <class R>
  void read(R report, const std::string& trailer);
  void arm();

  Mailbox& mailbox_;
  Membership membership_;
  std::function<void(const Note&)> on_note_;
  asio::steady_timer timer_;
  std::optional<TimePoint> armed_for_;
  MailReader inbox_;
};

}  // namespace tensorplay::rendezvous
