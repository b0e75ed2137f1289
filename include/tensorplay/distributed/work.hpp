#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/future.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace tensorplay::distributed {

/// One operation on its way: what a call with `async_op` returns.
///
/// The operation does not depend on this object: a Work that is dropped still completes, in its place in the group's
/// order. The tensors that were passed are kept alive until then; memory they borrow is the caller's to keep.
/// Thread rules: every method may be called from any thread. Source: c10d's Work.
class TP_API Work {
 public:
  /// `name` is the operation's for messages, `sequence` its number in the group.
  Work(std::string name, std::uint64_t sequence);
  virtual ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  virtual bool is_completed() const;
  bool is_success() const;               ///< Complete, and without an error.
  std::exception_ptr exception() const;  ///< Null while running and after success.

  /// Blocks until the operation is complete, and throws what it failed with. A positive `timeout` bounds this wait
  /// alone: DistBackendError when it is over, and the operation goes on. Zero: the operation's own deadline bounds it.
  virtual void wait(std::chrono::milliseconds timeout = std::chrono::milliseconds::zero());

  /// The tensors the operation filled. InvalidArgument while it is not complete.
  std::vector<Tensor> result() const;

  /// Who sent what a receive got, as a rank of the group; InvalidArgument for every other operation.
  int source_rank() const;

  std::shared_ptr<Future> get_future() const { return future_; }

  /// Ends the wait of everyone with a DistBackendError. The group's connections may be unusable afterwards.
  virtual void abort();

  const std::string& name() const noexcept { return name_; }
  std::uint64_t sequence_number() const noexcept { return sequence_; }

  // For the backend that carries it out.
  void finish(std::vector<Tensor> result) { future_->set_value(std::move(result)); }
  void fail(std::exception_ptr error) { future_->set_error(std::move(error)); }
  void set_source_rank(int rank) noexcept { source_rank_ = rank; }

 private:
  std::string name_;
  std::uint64_t sequence_;
  std::shared_ptr<Future> future_;
  int source_rank_ = -1;
};

}  // namespace tensorplay::distributed
