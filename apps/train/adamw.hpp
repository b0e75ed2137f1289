#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace train {

/// Adam with decoupled weight decay.
class AdamW {
 public:
  AdamW(std::size_t parameters, float learning_rate);

  /// Moves the parameters by the gradients of step `step`, which counts from 1.
  void update(std::span<float> parameters, std::span<const float> gradients, int step);

  /// The running means, to save and to restore: of the gradients, then of their squares.
  std::span<float> state() { return state_; }

 private:
  float learning_rate_;
  std::vector<float> state_;
};

}  // namespace train
