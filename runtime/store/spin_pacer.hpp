#pragma once

#include <chrono>
#include <cstdint>

namespace tensorplay::store {

/// When a server should look again at once instead of going to sleep.
///
/// Waking a sleeping thread costs more than serving a request. So after traffic that came shortly after other traffic
/// the server looks for some tens of microseconds, and no longer: a client that asks in a row finds it awake, and one
/// that asks now and then costs its neighbours nothing. Where looking was in vain several times it is only tried now
/// and then: a row a little too slow to be caught must not keep a CPU busy.
/// A core without I/O. Thread rules: none of its own; one user at a time.
class SpinPacer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::microseconds kRow{100};  ///< Traffic this close together is a row.
  static constexpr std::chrono::microseconds kSpin{60};  ///< How long to look after traffic in a row.

  /// With one CPU for both ends, looking would only keep the peer from answering.
  explicit SpinPacer(bool has_cpu_to_spare) : has_cpu_to_spare_(has_cpu_to_spare) {}

  void on_traffic(TimePoint now) noexcept {
    const auto gap = now - last_;
    last_ = now;
    if (is_looking_) failures_ = gap <= kSpin ? 0 : failures_ + 1;
    is_looking_ = has_cpu_to_spare_ && gap <= kRow && (failures_ < kMaxFailures || ++skipped_ % kTryEvery == 0);
  }

  bool should_spin(TimePoint now) const noexcept { return is_looking_ && now - last_ < kSpin; }

 private:
  static constexpr int kMaxFailures = 4;
  static constexpr std::uint32_t kTryEvery = 64;

  bool has_cpu_to_spare_;
  bool is_looking_ = false;
  int failures_ = 0;
  std::uint32_t skipped_ = 0;
  TimePoint last_{};
};

}  // namespace tensorplay::store
