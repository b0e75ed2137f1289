/// What a person sees while the agent waits for the world: one line in place with a clock that ticks, where stderr is a
/// terminal; elsewhere a line whenever something changes.
#pragma once

#include "agent/console.hpp"
#include "rendezvous/messages.hpp"

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <string>

namespace tensorplay::agent {

/// Thread rules: the loop's thread. The console must outlive it.
class WaitStatus {
 public:
  /// `job` stands before every line; may be empty.
  WaitStatus(asio::io_context& loop, Console& console, std::string job);

  /// "n1 does not resolve yet", for as long as nothing else is shown; the clock counts from the first wait() after
  /// clear(), towards `limit`.
  void wait(const std::string& text, std::chrono::milliseconds limit);

  /// What the leader has to tell.
  void show(const rendezvous::NewsOrder& news);

  /// The wait is over.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void set(std::string text, Clock::time_point began, std::chrono::milliseconds limit);
  void draw();

  Console& console_;
  const std::string job_;
  asio::steady_timer tick_;
  std::string text_;
  Clock::time_point began_{};
  std::chrono::milliseconds limit_{0};
  bool is_waiting_ = false;
};

}  // namespace tensorplay::agent
