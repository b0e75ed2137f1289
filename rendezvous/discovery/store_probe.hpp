#pragma once

#include "rendezvous/discovery/greeting.hpp"
#include "runtime/base/fd.hpp"
#include "runtime/base/socket.hpp"

#include <chrono>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

namespace tensorplay::rendezvous {

/// One attempt to greet the store at some addresses of one endpoint: connects to them as connect_to does, the next
/// address a moment after the last, and greets on the first connection that comes about.
///
/// Event driven: wait for the descriptors of add_waits() or until next_timer(), then call advance().
/// Thread rules: one user at a time. Ownership: owns its sockets.
class StoreProbe {
 public:
  using Clock = std::chrono::steady_clock;

  StoreProbe(std::vector<base::SocketAddress> addresses, GreetingOptions options, Clock::time_point now);

  void add_waits(std::vector<pollfd>& waits) const;
  std::optional<Clock::time_point> next_timer() const;

  /// Goes on as far as it can without waiting.
  void advance(Clock::time_point now);

  bool is_over() const noexcept { return finding_.answer != Answer::kPending; }
  const Finding& finding() const noexcept { return finding_; }

  /// The address that answered, in digits; empty before that.
  const std::string& peer() const noexcept { return peer_; }

 private:
  void start_next(Clock::time_point now);
  void check_connecting(Clock::time_point now);
  void connected(base::UniqueFd fd, Clock::time_point now);
  void note_failure(int error);
  void talk(Clock::time_point now);
  void send_output();
  void receive();

  std::vector<base::SocketAddress> addresses_;
  GreetingOptions options_;
  std::size_t next_address_ = 0;
  Clock::time_point next_start_;
  Clock::time_point connect_by_;
  std::vector<base::UniqueFd> connecting_;
  std::string failure_ = "no address";

  base::UniqueFd fd_;  ///< The connection that is greeted on.
  std::optional<Greeting> greeting_;
  std::string unsent_;
  Clock::time_point answer_by_;
  std::string peer_;
  Finding finding_;
};

}  // namespace tensorplay::rendezvous
