#include "apps/train/char_model.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

using train::CharModel;
using train::Corpus;

TEST_CASE("the gradients are the loss's derivatives") {
  const auto corpus = Corpus::built_in(3);
  const auto batch = corpus.batch(1, 1, 0, 5);
  CharModel model({corpus.vocabulary_size(), 3, 4, 6, 2}, 7);
  const auto parameters = model.parameters();
  std::vector<float> gradients(parameters.size());
  std::vector<float> ignored(parameters.size());
  model.loss(batch, gradients);
  int compared = 0;
  for (std::size_t i = 0; i < parameters.size(); i += 7) {
    constexpr float kStep = 1e-2F;
    const float before = parameters[i];
    parameters[i] = before + kStep;
    const float above = model.loss(batch, ignored);
    parameters[i] = before - kStep;
    const float below = model.loss(batch, ignored);
    parameters[i] = before;
    const float slope = (above - below) / (2 * kStep);
    REQUIRE(slope == Approx(gradients[i]).margin(2e-3));
    compared += std::abs(slope) > 0.01F;
  }
  REQUIRE(compared > 20);  // Zeros agree with anything.
}

TEST_CASE("a batch is the same whether one asks for it whole or by parts") {
  const auto corpus = Corpus::built_in(8);
  const auto whole = corpus.batch(5, 9, 0, 12);
  const auto second_half = corpus.batch(5, 9, 6, 6);
  REQUIRE(std::vector<int>(whole.targets.begin() + 6, whole.targets.end()) == second_half.targets);
  REQUIRE(std::vector<int>(whole.inputs.begin() + 48, whole.inputs.end()) == second_half.inputs);
  REQUIRE(corpus.batch(5, 10, 0, 12).targets != whole.targets);
  REQUIRE(corpus.batch(6, 9, 0, 12).targets != whole.targets);
}
