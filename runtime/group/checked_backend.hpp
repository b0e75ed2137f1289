#pragma once

#include "runtime/group/fingerprint.hpp"
#include "runtime/group/serial_executor.hpp"
#include "tensorplay/distributed/backend.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace tensorplay::distributed {

/// Any backend, with the DETAIL checks around it: before a collective runs the ranks compare what they are about to do,
/// over that backend itself. Where they differ nothing of the operation is sent, every rank gets a DistBackendError
/// that says who calls what, and the group stays usable. send and recv go through unchecked. Thread rules and errors:
/// Backend's.
class CheckedBackend final : public Backend {
 public:
  explicit CheckedBackend(std::shared_ptr<Backend> inner);
  ~CheckedBackend() override;

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

  void abort(const std::string& why) override;
  void shutdown() override;
  void set_timeout(std::chrono::milliseconds timeout) override;

 private:
  using Run = std::function<WorkPtr(const CallOptions&)>;

  WorkPtr submit(OpType type, const CallOptions& call, Fingerprint mine, Run run);
  void compare(const std::string& what, const Fingerprint& mine, const CallOptions& call);

  std::shared_ptr<Backend> inner_;
  std::atomic<bool> cannot_compare_{false};
  SerialExecutor executor_;  // Last: its thread uses everything above.
};

}  // namespace tensorplay::distributed
