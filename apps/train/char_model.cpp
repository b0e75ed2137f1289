#include "apps/train/char_model.hpp"

#include "apps/train/matrix.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <algorithm>
#include <cmath>

namespace train {

CharModel::CharModel(const ModelShape& shape, std::uint64_t seed) : shape_(shape) {
  std::size_t count = static_cast<std::size_t>(shape.vocabulary) * static_cast<std::size_t>(shape.embedding);
  int inputs = shape.context * shape.embedding;
  for (int i = 0; i <= shape.layers; ++i) {
    const int outputs = i == shape.layers ? shape.vocabulary : shape.hidden;
    const auto weights = static_cast<std::size_t>(inputs) * static_cast<std::size_t>(outputs);
    layers_.push_back({count, count + weights, inputs, outputs});
    count += weights + static_cast<std::size_t>(outputs);
    inputs = outputs;
  }
  parameters_.assign(count, 0.0F);
  activations_.resize(layers_.size() + 1);

  const auto random = tensorplay::randn({static_cast<std::int64_t>(count)}, seed);
  const auto numbers = random.span<float>();
  std::copy_n(numbers.begin(), layers_.front().weight, parameters_.begin());  // The embedding.
  for (const Layer& layer : layers_) {
    const float scale = 1.0F / std::sqrt(static_cast<float>(layer.inputs));
    for (std::size_t i = layer.weight; i < layer.bias; ++i) parameters_[i] = scale * numbers[i];
  }
}

std::vector<CharModel::Piece> CharModel::pieces() const {
  std::vector<Piece> pieces = {{"embedding", 0, {shape_.vocabulary, shape_.embedding}}};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const std::string name = "layer" + std::to_string(i);
    pieces.push_back({name + ".weight", layer.weight, {layer.inputs, layer.outputs}});
    pieces.push_back({name + ".bias", layer.bias, {layer.outputs}});
  }
  return pieces;
}

float CharModel::loss(const Batch& batch, std::span<float> gradients, const Ready& ready) {
  std::fill(gradients.begin(), gradients.end(), 0.0F);
  forward(batch);
  std::vector<float> derivative;
  const float result = cross_entropy(batch, derivative);
  backward(batch, std::move(derivative), gradients, ready);
  return result;
}

void CharModel::forward(const Batch& batch) {
  std::vector<float>& embedded = activations_.front();
  embedded.clear();
  for (const int character : batch.inputs) {
    const auto begin = parameters_.begin() + static_cast<std::ptrdiff_t>(character) * shape_.embedding;
    embedded.insert(embedded.end(), begin, begin + shape_.embedding);
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    std::vector<float>& out = activations_[i + 1];
    out.clear();
    const auto bias = parameters_.begin() + static_cast<std::ptrdiff_t>(layer.bias);
    for (int sample = 0; sample < batch.size; ++sample) out.insert(out.end(), bias, bias + layer.outputs);
    add_product(activations_[i].data(), &parameters_[layer.weight], out.data(), batch.size, layer.inputs,
                layer.outputs);
    if (i + 1 < layers_.size()) {
      for (float& value : out) value = std::tanh(value);
    }
  }
}

float CharModel::cross_entropy(const Batch& batch, std::vector<float>& derivative) const {
  // The derivative of the loss by a score is its probability, less one at the right character.
  derivative = activations_.back();
  double sum = 0;
  for (int sample = 0; sample < batch.size; ++sample) {
    const auto row =
        std::span(derivative)
            .subspan(static_cast<std::size_t>(sample * shape_.vocabulary), static_cast<std::size_t>(shape_.vocabulary));
    const float highest = *std::max_element(row.begin(), row.end());
    float total = 0;
    for (float& score : row) total += score = std::exp(score - highest);
    float& right = row[static_cast<std::size_t>(batch.targets[static_cast<std::size_t>(sample)])];
    sum -= std::log(right / total);
    for (float& score : row) score /= total * static_cast<float>(batch.size);
    right -= 1.0F / static_cast<float>(batch.size);
  }
  return static_cast<float>(sum / batch.size);
}

void CharModel::backward(const Batch& batch, std::vector<float> derivative, std::span<float> gradients,
                         const Ready& ready) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    const std::vector<float>& input = activations_[i];
    add_product_transposed_left(input.data(), derivative.data(), &gradients[layer.weight], batch.size, layer.inputs,
                                layer.outputs);
    for (int sample = 0; sample < batch.size; ++sample) {
      for (int j = 0; j < layer.outputs; ++j) {
        gradients[layer.bias + static_cast<std::size_t>(j)] +=
            derivative[static_cast<std::size_t>(sample * layer.outputs + j)];
      }
    }
    ready(2 * i + 2);
    ready(2 * i + 1);
    std::vector<float> below(input.size(), 0.0F);
    add_product_transposed_right(derivative.data(), &parameters_[layer.weight], below.data(), batch.size, layer.outputs,
                                 layer.inputs);
    if (i > 0) {
      for (std::size_t j = 0; j < below.size(); ++j) below[j] *= 1.0F - input[j] * input[j];  // tanh' = 1 - tanh^2
    }
    derivative = std::move(below);
  }
  for (std::size_t k = 0; k < batch.inputs.size(); ++k) {
    const auto row = static_cast<std::size_t>(batch.inputs[k] * shape_.embedding);
    for (std::size_t j = 0; j < static_cast<std::size_t>(shape_.embedding); ++j) {
      gradients[row + j] += derivative[k * static_cast<std::size_t>(shape_.embedding) + j];
    }
  }
  ready(0);
}

}  // namespace train
