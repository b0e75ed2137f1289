/// One round of poll(2) with a function for each descriptor.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <poll.h>
#include <vector>

namespace tensorplay::agent {

class PollSet {
 public:
  using Clock = std::chrono::steady_clock;

  /// A negative descriptor is left out.
  void watch(int fd, short events, std::function<void()> then) {
    if (fd < 0) return;
    waits_.push_back({fd, events, 0});
    actions_.push_back(std::move(then));
  }
  /// poll returns by then at the latest.
  void wake_at(Clock::time_point when) { wake_ = wake_ ? std::min(*wake_, when) : when; }

  /// Waits once and calls the functions of those descriptors that have news (or an error).
  void wait();

 private:
  std::vector<pollfd> waits_;
  std::vector<std::function<void()>> actions_;
  std::optional<Clock::time_point> wake_;
};

}  // namespace tensorplay::agent
