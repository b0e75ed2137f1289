/// How often the world may be started again after a failure. Pure: time comes in.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

namespace tensorplay::rendezvous {

using TimePoint = std::chrono::steady_clock::time_point;

struct RestartRules {
  int max_restarts = 0;                                           ///< Below zero counts as zero.
  std::optional<std::chrono::nanoseconds> window = std::nullopt;  ///< What was spent comes back after it.
  int no_progress_limit = 0;                                      ///< Fruitless restarts in a row; 0: no such rule.
  std::chrono::nanoseconds progress_after = std::chrono::seconds(60);  ///< An attempt that ran so long made progress.
};

enum class RestartAnswer {
  kRestart,     ///< One is spent.
  kNoneLeft,    ///< The budget is spent.
  kNoProgress,  ///< The last restarts made no progress: another would not either.
};

/// A budget of restarts, counted once for the whole world. With a window it is a budget for that stretch of time: what
/// was spent longer ago comes back, so a job of weeks is not ended by one bad node a day, and a crash loop still is.
/// Beside it, a rule against restarts that help nothing: a restart is fruitless when the world fails again before it
/// has run for as long as an attempt needs to get anywhere.
/// Thread rules: a value; one thread at a time.
class RestartPolicy {
 public:
  explicit RestartPolicy(RestartRules rules);

  /// The world has failed at `now`, having run for `ran` since the last restart.
  RestartAnswer ask(TimePoint now, std::chrono::nanoseconds ran);

  /// What another leader has spent before this one; what is less than is known already changes nothing.
  void adopt(int spent, int recent, int fruitless, TimePoint now);

  /// Restarts left at `now`.
  int left(TimePoint now) const { return rules_.max_restarts - recent(now); }

  /// Restarts that count against the budget at `now`.
  int recent(TimePoint now) const;

  /// Restarts in a row that made no progress.
  int fruitless() const { return fruitless_; }

  /// Restarts spent since the beginning, those that came back included: what workers see as their restart count.
  int spent() const { return spent_; }
  const RestartRules& rules() const { return rules_; }

 private:
  RestartRules rules_;
  std::deque<TimePoint> recent_;
  int spent_ = 0;
  int fruitless_ = 0;
};

}  // namespace tensorplay::rendezvous
