#include "apps/train/adamw.hpp"

#include <cmath>

namespace train {
namespace {

constexpr float kBeta1 = 0.9F;
constexpr float kBeta2 = 0.99F;
constexpr float kEpsilon = 1e-8F;
constexpr float kWeightDecay = 0.01F;

}  // namespace

AdamW::AdamW(std::size_t parameters, float learning_rate)
    : learning_rate_(learning_rate), state_(2 * parameters, 0.0F) {}

void AdamW::update(std::span<float> parameters, std::span<const float> gradients, int step) {
  const auto means = std::span(state_).first(parameters.size());
  const auto squares = std::span(state_).last(parameters.size());
  const auto steps = static_cast<float>(step);
  const float mean_correction = 1.0F / (1.0F - std::pow(kBeta1, steps));
  const float square_correction = 1.0F / (1.0F - std::pow(kBeta2, steps));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float gradient = gradients[i];
    means[i] = kBeta1 * means[i] + (1.0F - kBeta1) * gradient;
    squares[i] = kBeta2 * squares[i] + (1.0F - kBeta2) * gradient * gradient;
    const float direction = means[i] * mean_correction / (std::sqrt(squares[i] * square_correction) + kEpsilon);
    parameters[i] -= learning_rate_ * (direction + kWeightDecay * parameters[i]);
  }
}

}  // namespace train
