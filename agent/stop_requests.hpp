/// What a signal that reached tprun means, decided from its number, where it arrived and when. No clock, no signals: a
/// core that the agent's shell feeds.
///
/// Terminals, `timeout` and batch systems signal whole groups and steps, so one request arrives at the guardian and at
/// the agent; and a second Ctrl-C from an impatient user must not be taken for that.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <set>

namespace tensorplay::agent {

class StopRequests {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Place { kGuardian, kAgent };

  struct Arrival {
    int signal = 0;
    Place place = Place::kGuardian;
    bool from_step_daemon = false;  ///< slurmstepd sent it, to every process of the step.
  };

  enum class Action {
    kNone,  ///< A copy of something already acted on.
    kStop,
    kForce,   ///< A further request to stop, at least a second after the first.
    kNotify,  ///< To be passed to the workers.
  };

  /// Signals in `stop_signals` stop; all others notify.
  explicit StopRequests(const std::set<int>& stop_signals) : stop_signals_(stop_signals) {}

  Action apply(const Arrival& arrival, TimePoint now);

  /// Copies of one request arrive within this time; a second request is one that comes later than this.
  static constexpr std::chrono::milliseconds kOneRequest{1'000};

 private:
  Action apply_stop(TimePoint now);
  Action apply_notification(const Arrival& arrival, TimePoint now);

  const std::set<int> stop_signals_;
  std::optional<TimePoint> first_stop_;
  /// By signal, then place: a notification seen there whose copy at the other place is still to be expected.
  std::array<std::array<std::optional<TimePoint>, 2>, 65> unmatched_{};
};

}  // namespace tensorplay::agent
