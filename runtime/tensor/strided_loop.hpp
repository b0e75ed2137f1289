/// Walks tensors of one shape and different strides together, a row at a time.
#pragma once

#include "tensorplay/distributed/tensor.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorplay {

/// Calls `row(offsets, length, steps)` for each innermost row in order: `offsets[k]` is the element of the k-th operand
/// where the row begins, `steps[k]` the distance to its next. Nothing is called for an empty shape.
template <std::size_t kOperands, typename Row>
void for_each_row(const Shape& shape, const std::array<const Shape*, kOperands>& strides, Row&& row) {
  for (const auto size : shape) {
    if (size == 0) return;
  }
  std::array<std::int64_t, kOperands> offsets{};
  std::array<std::int64_t, kOperands> steps{};
  if (shape.empty()) {
    row(offsets, std::int64_t{1}, steps);
    return;
  }
  const std::size_t inner = shape.size() - 1;
  for (std::size_t k = 0; k < kOperands; ++k) steps[k] = (*strides[k])[inner];
  std::vector<std::int64_t> index(inner, 0);
  while (true) {
    row(offsets, shape[inner], steps);
    std::size_t d = inner;
    while (d > 0) {
      --d;
      for (std::size_t k = 0; k < kOperands; ++k) offsets[k] += (*strides[k])[d];
      if (++index[d] < shape[d]) break;
      for (std::size_t k = 0; k < kOperands; ++k) offsets[k] -= (*strides[k])[d] * shape[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (inner == 0) return;
  }
}

}  // namespace tensorplay
