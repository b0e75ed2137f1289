#pragma once

#include <chrono>

namespace tensorplay::store {

/// When a server should look again at once instead of going to sleep.
///
/// Waking a sleeping thread costs more than serving a request. So after traffic that came shortly after other traffic
/// the server looks for some tens of microseconds, and no longer: a client that asks in a row finds it awake, and one
/// that asks now and then costs its neighbours nothing.
/// A core without I/O. Thread rules: none of its own; one user at a time.
class SpinPacer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::microseconds kRow{100};  ///< Traffic this close together is a row.
  static constexpr std::chrono::microseconds kSpin{60};  ///< How long to look after traffic in a row.

  /// With one CPU for both ends, looking would only keep the peer from answering.
  explicit SpinPacer(bool has_cpu_to_spare) : has_cpu_to_spare_(has_cpu_to_spare) {}

  void on_traffic(TimePoint now) noexcept {
    is_row_ = has_cpu_to_spare_ && now - last_ <= kRow;
    last_ = now;
  }

  bool should_spin(TimePoint now) const noexcept { return is_row_ && now - last_ < kSpin; }

 private:
  bool has_cpu_to_spare_;
  bool is_row_ = false;
  TimePoint last_{};
};

}  // namespace tensorplay::store
