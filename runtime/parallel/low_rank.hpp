/// The small matrix products of PowerSGD, on row-major float matrices. Sums run in a fixed order.
///
/// Thread rules: pure.
#pragma once

#include <cmath>
#include <cstddef>

namespace tensorplay::nn::parallel {

/// p[n x r] = matrix[n x m] q[m x r]
inline void multiply(const float* matrix, const float* q, float* p, std::size_t n, std::size_t m, std::size_t r) {
  for (std::size_t i = 0; i < n; ++i) {
    float* row = p + i * r;
    for (std::size_t k = 0; k < r; ++k) row[k] = 0;
    for (std::size_t j = 0; j < m; ++j) {
      for (std::size_t k = 0; k < r; ++k) row[k] += matrix[i * m + j] * q[j * r + k];
    }
  }
}

/// q[m x r] = matrix[n x m]^T p[n x r]
inline void multiply_transposed(const float* matrix, const float* p, float* q, std::size_t n, std::size_t m,
                                std::size_t r) {
  for (std::size_t i = 0; i < m * r; ++i) q[i] = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      for (std::size_t k = 0; k < r; ++k) q[j * r + k] += matrix[i * m + j] * p[i * r + k];
    }
  }
}

/// matrix[n x m] = p[n x r] q[m x r]^T
inline void expand(const float* p, const float* q, float* matrix, std::size_t n, std::size_t m, std::size_t r) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < r; ++k) sum += p[i * r + k] * q[j * r + k];
      matrix[i * m + j] = sum;
    }
  }
}

/// Makes the columns of a[n x r] orthonormal (Gram-Schmidt). A column that vanishes stays zero.
inline void orthogonalize(float* a, std::size_t n, std::size_t r, double epsilon) {
  for (std::size_t k = 0; k < r; ++k) {
    for (std::size_t before = 0; before < k; ++before) {
      double dot = 0;
      for (std::size_t i = 0; i < n; ++i) dot += static_cast<double>(a[i * r + before]) * a[i * r + k];
      for (std::size_t i = 0; i < n; ++i) a[i * r + k] -= static_cast<float>(dot) * a[i * r + before];
    }
    double square = 0;
    for (std::size_t i = 0; i < n; ++i) square += static_cast<double>(a[i * r + k]) * a[i * r + k];
    const double norm = std::sqrt(square) + epsilon;
    const auto scale = norm > 0 ? static_cast<float>(1.0 / norm) : 0.0F;
    for (std::size_t i = 0; i < n; ++i) a[i * r + k] *= scale;
  }
}

}  // namespace tensorplay::nn::parallel
