#pragma once

#include "runtime/group/call_record.hpp"
#include "tensorplay/distributed/backend.hpp"

#include <memory>
#include <string>

namespace tensorplay::distributed {

/// Any backend, told to the sink of call_record.hpp. Thread rules and errors: Backend's.
class RecordedBackend final : public Backend {
 public:
  explicit RecordedBackend(std::shared_ptr<Backend> inner);

  std::string name() const override { return inner_->name(); }

  WorkPtr broadcast(const Tensor& tensor, int root, const CallOptions& call) override;
  WorkPtr all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr all_reduce_coalesced(const Tensors& tensors, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call) override;
  WorkPtr all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call) override;
  WorkPtr gather(const Tensors& outputs, const Tensor& input, int root, const CallOptions& call) override;
  WorkPtr scatter(const Tensor& output, const Tensors& inputs, int root, const CallOptions& call) override;
  WorkPtr reduce_scatter(const Tensor& output, const Tensors& inputs, const ReduceOp& op,
                         const CallOptions& call) override;
  WorkPtr reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                const CallOptions& call) override;
  WorkPtr all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call) override;
  WorkPtr all_to_all_single(const Tensor& output, const Tensor& input, const std::vector<std::int64_t>& output_splits,
                            const std::vector<std::int64_t>& input_splits, const CallOptions& call) override;
  WorkPtr barrier(const CallOptions& call) override;
  void monitored_barrier(std::chrono::milliseconds timeout, bool wait_all_ranks) override;
  WorkPtr send(const Tensor& tensor, int destination, int tag, const CallOptions& call) override;
  WorkPtr recv(const Tensor& tensor, int source, int tag, const CallOptions& call) override;
  WorkPtr recv_any_source(const Tensor& tensor, int tag, const CallOptions& call) override;

  void abort(const std::string& why) override { inner_->abort(why); }
  void shutdown() override { inner_->shutdown(); }
  void set_timeout(std::chrono::milliseconds timeout) override;

 private:
  CallRecord begin(OpType type, const Tensor* in, const Tensor* out, const CallOptions& call, int peer = -1) const;

  template <typename Run>
  static WorkPtr told(CallSink& sink, CallRecord record, Run run);

  std::shared_ptr<Backend> inner_;
};

}  // namespace tensorplay::distributed
