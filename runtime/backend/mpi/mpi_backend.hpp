#pragma once

#include "runtime/backend/mpi/mpi_requests.hpp"
#include "runtime/group/serial_executor.hpp"
#include "tensorplay/distributed/backend.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <string>
#include <vector>

namespace tensorplay::distributed {

/// Collectives on CPU tensors by MPI, for programs that its launcher started. Rank and size are MPI's.
///
/// Reductions are MPI's own: the same result on every rank and in every run of one MPI, but not always the bits of the
/// gloo backend. An operation that passes its deadline leaves the group unusable; MPI does not tell who is late.
/// Counts above 2^31 - 1 elements travel in pieces in broadcast, all_reduce, reduce and point-to-point calls and are
/// refused elsewhere. Thread rules and errors: Backend's.
class MpiBackend final : public Backend {
 public:
  explicit MpiBackend(BackendOptions options);
  ~MpiBackend() override;

  std::string name() const override { return "mpi"; }

  WorkPtr broadcast(const Tensor& tensor, int root, const CallOptions& call) override;
  WorkPtr all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call) override;
  WorkPtr all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call) override;
  WorkPtr all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call) override;
  WorkPtr gather(const Tensors& outputs, const Tensor& input, int root, const CallOptions& call) override;
  WorkPtr scatter(const Tensor& output, const Tensors& inputs, int root, const CallOptions& call) override;
  WorkPtr reduce_scatter(const Tensor& output, const Tensors& inputs, const ReduceOp& op,
                         const CallOptions& call) override;
  WorkPtr all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call) override;
  WorkPtr barrier(const CallOptions& call) override;
  WorkPtr send(const Tensor& tensor, int destination, int tag, const CallOptions& call) override;
  WorkPtr recv(const Tensor& tensor, int source, int tag, const CallOptions& call) override;
  WorkPtr recv_any_source(const Tensor& tensor, int tag, const CallOptions& call) override;

  void abort(const std::string& why) override;
  void shutdown() override;

 private:
  /// One collective being carried out.
  struct Running {
    std::string what;
    std::chrono::milliseconds limit;
    Deadline deadline;
    std::vector<Tensor> memory;  ///< What MPI reads and writes.
  };
  /// Starts requests with the lock of MPI held.
  using Start = std::function<void(std::vector<MPI_Request>&)>;

  WorkPtr submit(const char* operation, const CallOptions& call, std::function<Tensors(Running&)> run);
  void carry_out(Running& running, const Start& start);
  WorkPtr transfer(bool is_send, const Tensor& tensor, int peer, int tag, const CallOptions& call);
  std::string reason_unusable() const;
  void make_unusable(const std::string& why);

  MPI_Comm communicator_ = MPI_COMM_NULL;
  mutable std::mutex mutex_;
  std::string unusable_;
  bool is_shut_down_ = false;
  std::atomic<bool> has_given_up_{false};  // MPI still works on an operation that passed its deadline.
  std::atomic<std::uint64_t> transfers_{0};
  mpi::Requests requests_;
  SerialExecutor executor_;  // Last: its thread uses everything above.
};

}  // namespace tensorplay::distributed
