/// How often the world may be started again after a failure. Pure: time comes in.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

namespace tensorplay::rendezvous {

using TimePoint = std::chrono::steady_clock::time_point;

/// A budget of restarts, counted once for the whole world. With a window it is a budget for that stretch of time: what
/// was spent longer ago comes back, so a job of weeks is not ended by one bad node a day, and a crash loop still is.
/// Thread rules: a value; one thread at a time.
class RestartPolicy {
 public:
  /// `max_restarts` below zero counts as zero. Without a window nothing ever comes back.
  explicit RestartPolicy(int max_restarts, std::optional<std::chrono::nanoseconds> window = std::nullopt);

  /// Spends one restart at `now`; false, and nothing is spent, when none is left.
  bool try_spend(TimePoint now);

  /// Restarts left at `now`.
  int left(TimePoint now) const;

  /// Restarts spent since the beginning, those that came back included: what workers see as their restart count.
  int spent() const { return spent_; }
  int max_restarts() const { return max_restarts_; }

 private:
  int max_restarts_;
  std::optional<std::chrono::nanoseconds> window_;
  std::deque<TimePoint> recent_;
  int spent_ = 0;
};

}  // namespace tensorplay::rendezvous
