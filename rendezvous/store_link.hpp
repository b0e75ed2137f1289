/// How an agent speaks with the leader when the store is on another host: reports go into the store's inbox, orders
/// come out of the agent's own mailbox, and its will lies there for as long as it answers.
///
/// Two connections. On the speaking one it says hello, leaves its will, pings, and pushes reports; on the listening one
/// it waits for orders. Either may break: it is made again and what was not answered is sent again, so a blip costs
/// nothing. The lease binds this side too: without an answer for a whole keep-alive the agent is cut off, and the
/// store's host thinks the same of it (docs/store-protocol.md).
#pragma once

#include "rendezvous/mailbox.hpp"
#include "runtime/base/socket.hpp"

#include <asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tensorplay::store {
class Authenticator;
}

namespace tensorplay::rendezvous {

struct StoreLinkOptions {
  std::vector<base::SocketAddress> addresses;  ///< Of the store, tried in turn.
  std::string place;                           ///< "n1:29400", for messages.
  std::string run_id;
  std::string user;
  AgentId agent;
  std::uint64_t token = 0;  ///< Shared with the agent's guardian only.
  std::uint64_t epoch = 0;
  std::chrono::milliseconds keep_alive{15'000};
  std::chrono::milliseconds reconnect{2'000};  ///< How long the store waits for us after a connection has closed.
  std::string will;                            ///< What the leader shall read when we are lost.
  std::shared_ptr<const store::Authenticator> authenticator = nullptr;  ///< Null: there is no secret.
};

/// Thread rules: the loop's thread only. After on_cut_off, and after the destructor, no callback comes.
class StoreLink final : public Mailbox {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// The lease is over.
  struct CutOff {
    std::string why;
    bool is_store_lost = false;  ///< Nobody answers there any more; else the store itself sends us away.
  };

  struct Callbacks {
    /// The store holds our will, for the first time: the agent may join. The address is this host's end, in digits.
    std::function<void(const std::string& local_address)> on_held;
    /// A ping that was sent at `sent` has been answered: nobody takes us for lost before `sent` + keep_alive.
    std::function<void(TimePoint sent)> on_answer;
    /// No answer for a whole keep-alive, nobody at the store's port any more, told that we are lost, or refused.
    std::function<void(const CutOff&)> on_cut_off;
  };

  /// Begins to connect at once.
  StoreLink(asio::io_context& loop, StoreLinkOptions options, Callbacks callbacks);
  ~StoreLink() override;

  /// `queue` is the inbox. Kept until the store has it, or the link is cut off.
  void post(const std::string& queue, const std::string& text) override;
  /// `queue` is the agent's own.
  std::optional<std::string> take(const std::string& queue) override;
  void watch(const std::string& queue, std::function<void()> on_mail) override;

  /// Sends what is left to send, takes the will back and closes; `done` is called when the store has answered, or when
  /// `limit` is over. Nothing else is called after this.
  void leave(std::chrono::milliseconds limit, std::function<void()> done);

  /// What must be added to this host's clock to get that of the store's host.
  std::chrono::microseconds clock_offset() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tensorplay::rendezvous
