#pragma once

#include "runtime/backend/gloo/algorithms.hpp"
#include "runtime/backend/gloo/mesh.hpp"
#include "runtime/backend/gloo/transfers.hpp"
#include "runtime/group/serial_executor.hpp"
#include "tensorplay/distributed/backend.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tensorplay::distributed {

/// Collectives on CPU tensors over TCP, on the Gloo library's transport.
///
/// Every dtype, every ReduceOp, strided tensors (packed and unpacked around the transfer). Collectives run one after
/// the other, synchronous ones in the caller's thread; send and recv run beside them.
/// Thread rules and errors: Backend's.
class GlooBackend final : public Backend {
 public:
  /// Connects to every peer; see Mesh.
  explicit GlooBackend(BackendOptions options);
  ~GlooBackend() override;

  std::string name() const override { return "gloo"; }

  WorkPtr broadcast(const Tensor& tensor, int root, const CallOptions& call) override;
  WorkPtr all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr all_reduce_coalesced(const Tensors& tensors, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call) override;
  WorkPtr all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call) override;
  WorkPtr gather(const Tensors& outputs, const Tensor& input, int root, const CallOptions& call) override;
  WorkPtr scatter(const Tensor& output, const Tensors& inputs, int root, const CallOptions& call) override;
  WorkPtr reduce_scatter(const Tensor& output, const Tensors& inputs, const ReduceOp& op,
                         const CallOptions& call) override;
  WorkPtr reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                const CallOptions& call) override;
  WorkPtr all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call) override;
  WorkPtr barrier(const CallOptions& call) override;
  void monitored_barrier(std::chrono::milliseconds timeout, bool wait_all_ranks) override;
  WorkPtr send(const Tensor& tensor, int destination, int tag, const CallOptions& call) override;
  WorkPtr recv(const Tensor& tensor, int source, int tag, const CallOptions& call) override;
  WorkPtr recv_any_source(const Tensor& tensor, int tag, const CallOptions& call) override;

  void abort(const std::string& why) override;
  void shutdown() override;

 private:
  using Run = std::function<std::vector<Tensor>(Operation&)>;

  WorkPtr submit(OpType type, const CallOptions& call, Run run);

  Mesh mesh_;
  Scratch scratch_;  // Used by the running collective alone.
  Transfers transfers_;
  SerialExecutor executor_;  // Last: its thread uses everything above.
};

}  // namespace tensorplay::distributed
