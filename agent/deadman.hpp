/// Ends this process when it has not said in time that it is alive, also while it is stopped: SIGKILL by a timer of the
/// kernel's. The workers die with their agent (parent-death signal), so a frozen agent's workers never outlive its
/// lease by more than a moment.
#pragma once

#include <chrono>
#include <ctime>

namespace tensorplay::agent {

/// Thread rules: one thread. A fork does not inherit the timer.
class Deadman {
 public:
  /// Throws std::system_error.
  Deadman();
  ~Deadman();
  Deadman(const Deadman&) = delete;
  Deadman& operator=(const Deadman&) = delete;

  /// SIGKILL at `when`, unless it is armed again or disarmed before. Time while the machine sleeps counts.
  void arm(std::chrono::steady_clock::time_point when);
  void disarm();

 private:
  void set(std::chrono::nanoseconds from_now);

  timer_t timer_{};
};

}  // namespace tensorplay::agent
