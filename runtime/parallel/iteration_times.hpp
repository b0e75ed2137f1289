#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace tensorplay::nn::parallel {

/// When the stages of the sampled iterations began and ended, summed up.
///
/// Thread rules: communication_ended from any thread, the rest from the thread that trains (with the reducer's lock).
class IterationTimes {
 public:
  using Clock = std::chrono::steady_clock;

  struct Sums {
    std::int64_t iterations = 0;
    std::int64_t forward_ns = 0;
    std::int64_t backward_ns = 0;       ///< First gradient to the last.
    std::int64_t communication_ns = 0;  ///< First reduction's start to the last one's end.
    std::int64_t overlap_ns = 0;        ///< The part of it before the backward pass was over.
  };

  void forward_began() { forward_ = Clock::now(); }
  void first_gradient() {
    first_gradient_ = Clock::now();
    last_end_->store(0);
    first_launch_ = {};
  }
  void reduction_began() {
    if (first_launch_ == Clock::time_point{}) first_launch_ = Clock::now();
  }
  /// Shared with the callbacks, which may outlive the reducer.
  std::shared_ptr<std::atomic<std::int64_t>> end_mark() const { return last_end_; }
  static void reduction_ended(std::atomic<std::int64_t>& mark) { mark.store(Clock::now().time_since_epoch().count()); }
  void backward_ended() { backward_end_ = Clock::now(); }
  void iteration_ended() {
    ++sums_.iterations;
    if (forward_ != Clock::time_point{}) sums_.forward_ns += count(first_gradient_ - forward_);
    sums_.backward_ns += count(backward_end_ - first_gradient_);
    const Clock::time_point last(Clock::duration(last_end_->load()));
    if (first_launch_ == Clock::time_point{} || last < first_launch_) return;
    sums_.communication_ns += count(last - first_launch_);
    const auto overlap_end = last < backward_end_ ? last : backward_end_;
    if (overlap_end > first_launch_) sums_.overlap_ns += count(overlap_end - first_launch_);
  }
  const Sums& sums() const { return sums_; }

 private:
  static std::int64_t count(Clock::duration duration) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
  }

  Clock::time_point forward_{};
  Clock::time_point first_gradient_{};
  Clock::time_point first_launch_{};
  Clock::time_point backward_end_{};
  std::shared_ptr<std::atomic<std::int64_t>> last_end_ = std::make_shared<std::atomic<std::int64_t>>(0);
  Sums sums_;
};

}  // namespace tensorplay::nn::parallel
