#pragma once

#include "runtime/backend/gloo/algorithms.hpp"
#include "runtime/backend/gloo/mesh.hpp"
#include "runtime/group/serial_executor.hpp"
#include "tensorplay/distributed/backend.hpp"

#include <atomic>
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
  WorkPtr all_gather(const std::vector<Tensor>& outputs, const Tensor& input, const CallOptions& call) override;
  WorkPtr all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call) override;
  WorkPtr reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, const ReduceOp& op,
                         const CallOptions& call) override;
  WorkPtr reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                const CallOptions& call) override;
  WorkPtr barrier(const CallOptions& call) override;
  WorkPtr send(const Tensor& tensor, int destination, int tag, const CallOptions& call) override;
  WorkPtr recv(const Tensor& tensor, int source, int tag, const CallOptions& call) override;

  void abort(const std::string& why) override;
  void shutdown() override;

 private:
  using Run = std::function<std::vector<Tensor>(Operation&)>;

  WorkPtr submit(const char* operation, const CallOptions& call, Run run);
  WorkPtr transfer(const char* operation, int tag, const CallOptions& call, const std::function<void(Step&)>& post);

  Mesh mesh_;
  Scratch scratch_;  // Used by the running collective alone.
  std::atomic<std::uint64_t> transfers_{0};
  SerialExecutor executor_;  // Last: its thread uses everything above.
};

}  // namespace tensorplay::distributed
