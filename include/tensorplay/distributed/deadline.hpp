#pragma once

#include "tensorplay/distributed/export.hpp"

#include <chrono>

namespace tensorplay::distributed {

/// A point in time that a blocking call must not outlive.
///
/// Made once, where the user's timeout enters, and passed down by value: connect, handshake and request share one
/// deadline instead of each starting a clock of its own.
/// Thread rules: a value; copy it freely.
class TP_API Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// The deadline `timeout` from now. Zero has already passed; negative throws InvalidArgument.
  static Deadline after(std::chrono::milliseconds timeout);

  /// Never passes. For callers whose own caller holds the deadline.
  static Deadline never() noexcept { return Deadline(Clock::time_point::max()); }

  /// The deadline at `when`.
  static Deadline at(Clock::time_point when) noexcept { return Deadline(when); }

  bool is_never() const noexcept { return when_ == Clock::time_point::max(); }
  bool has_passed(Clock::time_point now = Clock::now()) const noexcept { return now >= when_; }
  Clock::time_point when() const noexcept { return when_; }

  /// Time left, zero once passed.
  Clock::duration remaining(Clock::time_point now = Clock::now()) const noexcept {
    return now >= when_ ? Clock::duration::zero() : when_ - now;
  }

  /// Time left for poll(2), rounded up so that it never wakes too early; -1 for a deadline that never passes.
  int poll_timeout_ms(Clock::time_point now = Clock::now()) const noexcept;

  /// The earlier of the two.
  friend Deadline earlier(Deadline a, Deadline b) noexcept { return a.when_ < b.when_ ? a : b; }

 private:
  explicit Deadline(Clock::time_point when) noexcept : when_(when) {}
  Clock::time_point when_;
};

}  // namespace tensorplay::distributed
