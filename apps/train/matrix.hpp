/// The three products that a layer needs, on row-major matrices. Plain loops whose innermost one the compiler
/// vectorises; sums run in a fixed order, so results are the same in every run.
#pragma once

namespace train {

/// c[m x n] += a[m x k] b[k x n]
void add_product(const float* a, const float* b, float* c, int m, int k, int n);

/// c[k x n] += a[m x k]^T b[m x n]
void add_product_transposed_left(const float* a, const float* b, float* c, int m, int k, int n);

/// c[m x k] += a[m x n] b[k x n]^T
void add_product_transposed_right(const float* a, const float* b, float* c, int m, int n, int k);

}  // namespace train
