/// Decides whether to look for an answer without sleeping. Waking a thread that sleeps costs several times what a
/// store request takes, but looking in vain takes the time of others: so look only while requests follow each other
/// closely and looking has paid. A core without I/O; time comes in.
/// Thread rules: one user at a time.
#pragma once

#include <chrono>
#include <cstdint>

namespace tensorplay::store {

class SpinBudget {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// How long to look before sleeping, for a request sent at `now`.
  std::chrono::microseconds for_request_at(TimePoint now) noexcept {
    const bool is_followed_closely = now - last_answer_ < kCloseGap;
    if (!is_followed_closely) return {};
    if (failures_ < kMaxFailures) return kSpin;
    return ++skipped_ % kProbeEvery == 0 ? kSpin : std::chrono::microseconds::zero();
  }

  /// The answer came at `now`, `waited` after its request.
  void answered(TimePoint now, std::chrono::nanoseconds waited) noexcept {
    last_answer_ = now;
    if (waited <= kSpin) {
      failures_ = 0;
    } else if (failures_ < kMaxFailures) {
      ++failures_;
    }
  }

 private:
  static constexpr std::chrono::microseconds kSpin{60};
  static constexpr std::chrono::microseconds kCloseGap{500};
  static constexpr int kMaxFailures = 4;
  static constexpr std::uint32_t kProbeEvery = 64;

  TimePoint last_answer_{};
  int failures_ = 0;
  std::uint32_t skipped_ = 0;
};

}  // namespace tensorplay::store
