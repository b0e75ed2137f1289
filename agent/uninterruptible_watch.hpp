/// Workers that hang in uninterruptible sleep while they should run: a dead file server, a stuck driver. No event tells
/// of it, so this looks, seldom, and only when the user set a limit (TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT).
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace tensorplay::agent {

/// The limit that the user set, a number of seconds; zero when it is unset, not positive or not a number.
std::chrono::milliseconds uninterruptible_limit_from_environment();

/// Thread rules: loop thread only.
class UninterruptibleWatch {
 public:
  /// `live_workers` says whom to look at; `on_stuck` is called once, with the first that was in state D at every look
  /// for `limit`. It may destroy this object.
  UninterruptibleWatch(asio::io_context& loop, std::chrono::milliseconds limit,
                       std::function<std::vector<pid_t>()> live_workers, std::function<void(pid_t)> on_stuck);
  ~UninterruptibleWatch();
  UninterruptibleWatch(const UninterruptibleWatch&) = delete;
  UninterruptibleWatch& operator=(const UninterruptibleWatch&) = delete;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void look_later();
  void look();

  const std::chrono::milliseconds limit_;
  const std::function<std::vector<pid_t>()> live_workers_;
  const std::function<void(pid_t)> on_stuck_;
  asio::steady_timer timer_;
  std::unordered_map<pid_t, TimePoint> since_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tensorplay::agent
