/// How reports reach the leader and orders reach the agents: named queues of texts. One interface for an agent that
/// sits beside the leader and for one that sits on another host.
#pragma once

#include "rendezvous/messages.hpp"

#include <asio/io_context.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tensorplay::rendezvous {

/// The leader's inbox.
inline constexpr const char* kInbox = "inbox";

/// The queue in which an agent finds its orders.
inline std::string orders_queue(const AgentId& agent) {
  return "orders/" + agent;
}

/// Thread rules: any thread.
class Mailbox {
 public:
  virtual ~Mailbox() = default;

  /// Appends to a queue. Never waits for the reader.
  virtual void post(const std::string& queue, const std::string& text) = 0;

  /// Takes the oldest text, if any.
  virtual std::optional<std::string> take(const std::string& queue) = 0;

  /// Calls `on_mail`, on whatever thread, when there may be something to take; an empty function ends that. A call too
  /// many is harmless, so that none is missed.
  virtual void watch(const std::string& queue, std::function<void()> on_mail) = 0;
};

/// Hands every text of one queue to a callback on the loop, in order.
/// Thread rules: make, use and destroy on the loop's thread. The mailbox must outlive it.
class MailReader {
 public:
  MailReader(asio::io_context& loop, Mailbox& mailbox, std::string queue, std::function<void(const std::string&)> read);
  ~MailReader();  ///< No callback comes after this.
  MailReader(const MailReader&) = delete;
  MailReader& operator=(const MailReader&) = delete;

 private:
  struct Shared;
  Mailbox& mailbox_;
  std::string queue_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace tensorplay::rendezvous
