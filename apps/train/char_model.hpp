#pragma once

#include "apps/train/corpus.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace train {

struct ModelShape {
  int vocabulary = 0;
  int context = 0;
  int embedding = 0;
  int hidden = 0;
  int layers = 0;
};

/// Guesses the next character from the last few: their embeddings one after the other, hidden layers with tanh, and a
/// softmax over the vocabulary.
///
/// All parameters lie in one array, and their gradients in another of the same layout: one loop updates them, one write
/// saves them. pieces() says which part is which.
class CharModel {
 public:
  /// Parameters are random numbers that follow from the seed.
  CharModel(const ModelShape& shape, std::uint64_t seed);

  std::span<float> parameters() { return parameters_; }

  /// A matrix or a bias within the array.
  struct Piece {
    std::string name;
    std::size_t offset;
    tensorplay::Shape shape;
  };
  std::vector<Piece> pieces() const;

  /// Told which piece's gradient is complete, while the backward pass goes on.
  using Ready = std::function<void(std::size_t piece)>;

  /// Mean cross entropy of the batch, in nats. `gradients` (as long as the parameters) becomes its derivative.
  float loss(
      const Batch& batch, std::span<float> gradients, const Ready& ready = [](std::size_t) {});

 private:
  /// A matrix and the bias after it, by their places in the arrays.
  struct Layer {
    std::size_t weight;
    std::size_t bias;
    int inputs;
    int outputs;
  };

  void forward(const Batch& batch);
  float cross_entropy(const Batch& batch, std::vector<float>& derivative) const;
  void backward(const Batch& batch, std::vector<float> derivative, std::span<float> gradients, const Ready& ready);

  ModelShape shape_;
  std::vector<Layer> layers_;  // The hidden ones and the output.
  std::vector<float> parameters_;
  std::vector<std::vector<float>> activations_;  // Input of each layer, then the output's scores.
};

}  // namespace train
