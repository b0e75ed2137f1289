#pragma once

#include "tensorplay/distributed/backend.hpp"
#include "tensorplay/distributed/fake_backend.hpp"

#include <atomic>
#include <cstdint>
#include <set>
#include <vector>

namespace tensorplay::distributed {

/// Stands for a group without peers: any rank of any size, in one process, to try the control flow of large programs.
///
/// Every operation succeeds at once and leaves tensors as they are, but for what a rank gives itself: its own part of a
/// gather, a scatter, an all_to_all. No rank waits for another. Thread rules: any thread.
class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(BackendOptions options);

  std::string name() const override { return "fake"; }

  WorkPtr broadcast(const Tensor& tensor, int root, const CallOptions& call) override;
  WorkPtr all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call) override;
  WorkPtr gather(const Tensors& outputs, const Tensor& input, int root, const CallOptions& call) override;
  WorkPtr scatter(const Tensor& output, const Tensors& inputs, int root, const CallOptions& call) override;
  WorkPtr reduce_scatter(const Tensor& output, const Tensors& inputs, const ReduceOp& op,
                         const CallOptions& call) override;
  WorkPtr all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call) override;
  WorkPtr barrier(const CallOptions& call) override;
  void monitored_barrier(std::chrono::milliseconds timeout, bool wait_all_ranks) override;
  WorkPtr send(const Tensor& tensor, int destination, int tag, const CallOptions& call) override;
  WorkPtr recv(const Tensor& tensor, int source, int tag, const CallOptions& call) override;
  WorkPtr recv_any_source(const Tensor& tensor, int tag, const CallOptions& call) override;

 private:
  WorkPtr done(OpType type, const CallOptions& call, Tensors result, int source = -1);

  std::set<OpType> failing_;
  std::atomic<std::uint64_t> sequence_{0};
};

}  // namespace tensorplay::distributed
