#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/future.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tensorplay::nn::parallel {

/// Gradients that travel together: what a communication hook gets.
///
/// One contiguous buffer of one dtype; gradients() are views of it, one for each parameter. The bucket belongs to the
/// DistributedDataParallel and stays as it is until the hook's future is complete.
/// Thread rules: as any tensor. Source: c10d's GradBucket.
class TP_API GradBucket {
 public:
  GradBucket(std::size_t index, bool is_last, Tensor buffer, std::vector<Tensor> gradients,
             std::vector<Tensor> parameters)
      : index_(index),
        is_last_(is_last),
        buffer_(std::move(buffer)),
        gradients_(std::move(gradients)),
        parameters_(std::move(parameters)) {}

  std::size_t index() const noexcept { return index_; }  ///< Buckets are reduced in the order of their indices.
  bool is_last() const noexcept { return is_last_; }     ///< The last one of the iteration.
  const Tensor& buffer() const noexcept { return buffer_; }
  const std::vector<Tensor>& gradients() const noexcept { return gradients_; }
  const std::vector<Tensor>& parameters() const noexcept { return parameters_; }

  /// For wrappers of hooks: the inner hook sees `buffer` instead. gradients() keep showing the bucket's own.
  void set_buffer(Tensor buffer) { buffer_ = std::move(buffer); }

 private:
  std::size_t index_;
  bool is_last_;
  Tensor buffer_;
  std::vector<Tensor> gradients_;
  std::vector<Tensor> parameters_;
};

/// Reduces one bucket: starts the communication and returns the future of one tensor, the averaged gradients, as many
/// elements as the bucket's buffer. It has to divide by the world size itself.
///
/// Called once for each bucket in the same order on all ranks, from the thread that marks gradients as ready; it must
/// not wait for the communication. Each rank starts its operations in the order of the calls; a hook that has several
/// operations behind one another runs them in a thread of its own, as PowerSGD's does.
using CommHook = std::function<std::shared_ptr<distributed::Future>(GradBucket& bucket)>;

}  // namespace tensorplay::nn::parallel
