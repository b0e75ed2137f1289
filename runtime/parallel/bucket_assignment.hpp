/// Which parameters share a bucket.
///
/// Thread rules: pure.
#pragma once

#include "tensorplay/distributed/device.hpp"
#include "tensorplay/distributed/dtype.hpp"

#include <cstddef>
#include <vector>

namespace tensorplay::nn::parallel {

struct BucketCandidate {
  std::size_t parameter = 0;  ///< What the caller calls it.
  std::size_t bytes = 0;
  DType dtype = DType::kFloat32;
  Device device = {};
};

/// Fills buckets with candidates in their order: one dtype and device in each, closed as soon as it holds its cap or
/// more. `caps` are those of the first, second, ... bucket of one dtype and device; the last one goes on. Buckets come
/// in the order in which they are full when gradients arrive in the candidates' order. Source: c10d's Reducer.
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<BucketCandidate>& candidates,
                                                     const std::vector<std::size_t>& caps);

}  // namespace tensorplay::nn::parallel
