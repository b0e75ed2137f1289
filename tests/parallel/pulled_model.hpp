/// A fake model for tests: each parameter is pulled towards a number of its rank and step, so gradients are known.
#pragma once

#include "tensorplay/nn/parallel/distributed_data_parallel.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorplay::testing {

class PulledModel {
 public:
  explicit PulledModel(const std::vector<Shape>& shapes, std::uint64_t seed = 1) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      values.push_back(randn(shapes[i], seed + i));
      gradients.push_back(zeros(shapes[i]));
    }
  }
  PulledModel(std::initializer_list<Shape> shapes) : PulledModel(std::vector<Shape>(shapes)) {}
  PulledModel(const PulledModel&) = delete;
  PulledModel& operator=(const PulledModel&) = delete;

  nn::parallel::Model list() {
    nn::parallel::Model model;
    for (std::size_t i = 0; i < values.size(); ++i) {
      model.parameters.push_back({.name = "p" + std::to_string(i),
                                  .value = values[i],
                                  .gradient = gradients[i],
                                  .set_gradient = [this, i](const Tensor& place) { gradients[i] = place; }});
    }
    return model;
  }

  static float target(int rank, int step, std::size_t parameter) {
    return std::sin(static_cast<float>(rank * 7 + step) * 0.37F + static_cast<float>(parameter));
  }

  /// The gradient of parameter i for one rank, added to (or written over) what is there.
  void differentiate(int rank, int step, std::size_t i, bool accumulate = false) {
    const Tensor value = values[i].to(DType::kFloat32);
    Tensor delta = empty(value.shape());
    for (std::int64_t k = 0; k < value.numel(); ++k) {
      delta.data<float>()[k] = value.data<float>()[k] - target(rank, step, i) - 0.01F * static_cast<float>(k % 13);
    }
    if (accumulate) {
      gradients[i].add_(delta.to(gradients[i].dtype()));
    } else {
      gradients[i].copy_(delta);
    }
  }

  /// From the last parameter to the first, as a backward pass goes.
  void backward(int rank, int step, const std::function<void(std::size_t)>& ready, bool accumulate = false) {
    for (std::size_t i = values.size(); i-- > 0;) {
      differentiate(rank, step, i, accumulate);
      ready(i);
    }
  }

  void descend(double rate = 0.05) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Tensor change = gradients[i].clone();
      change.mul_(-rate);
      values[i].add_(change);
    }
  }

  void zero_grad() {
    for (auto& gradient : gradients) gradient.fill_(0);
  }

  std::vector<Tensor> values;
  std::vector<Tensor> gradients;
};

/// Catch2's assertions are not for threads: a rank throws, and the test looks at how the ranks ended.
inline void check(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

inline bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

}  // namespace tensorplay::testing
