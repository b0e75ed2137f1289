#include "apps/train/matrix.hpp"

#include <cstddef>
#include <vector>

namespace train {
namespace {

/// y += factor * x
inline void add_scaled(const float* __restrict x, float factor, float* __restrict y, int count) {
  for (int i = 0; i < count; ++i) y[i] += factor * x[i];
}

}  // namespace

void add_product(const float* a, const float* b, float* c, int m, int k, int n) {
  for (int row = 0; row < m; ++row) {
    for (int i = 0; i < k; ++i) {
      add_scaled(b + static_cast<std::ptrdiff_t>(i) * n, a[row * k + i], c + static_cast<std::ptrdiff_t>(row) * n, n);
    }
  }
}

void add_product_transposed_left(const float* a, const float* b, float* c, int m, int k, int n) {
  for (int row = 0; row < m; ++row) {
    for (int i = 0; i < k; ++i) {
      add_scaled(b + static_cast<std::ptrdiff_t>(row) * n, a[row * k + i], c + static_cast<std::ptrdiff_t>(i) * n, n);
    }
  }
}

void add_product_transposed_right(const float* a, const float* b, float* c, int m, int n, int k) {
  // Turned over once, so that the inner loop adds rows here too.
  std::vector<float> turned(static_cast<std::size_t>(n) * static_cast<std::size_t>(k));
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < n; ++j) turned[static_cast<std::size_t>(j * k + i)] = b[i * n + j];
  }
  add_product(a, turned.data(), c, m, n, k);
}

}  // namespace train
