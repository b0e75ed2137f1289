/// The operations of a group. Every rank of the group makes the same calls in the same order.
///
/// Without `async_op` a call returns null once the operation is complete on this rank, and throws what it failed with;
/// with it the call returns the operation's Work at once. A default-constructed group means the default group.
/// Tensors may be strided; all ranks pass the same dtype and number of elements. `timeout` (zero: the group's) bounds
/// the operation: DistBackendError at its end, naming the ranks that nothing came from. A peer that dies ends the
/// operation within milliseconds with a DistBackendError that names it. After either the group is unusable: destroy
/// it. InvalidArgument, before anything is sent, for what this rank can see is wrong.
/// Reductions take the ranks' contributions in rank order: the same bits in every run and on every rank.
/// Source of the semantics: c10d.
#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/distributed/reduce_op.hpp"
#include "tensorplay/distributed/tensor.hpp"
#include "tensorplay/distributed/work.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace tensorplay::distributed {

struct BroadcastOptions {
  std::optional<int> src = {};  ///< Global rank; neither given: 0.
  Group group = {};
  bool async_op = false;
  std::optional<int> group_src = {};  ///< Rank of the group instead.
  std::chrono::milliseconds timeout{0};
};

struct AllReduceOptions {
  ReduceOp op = ReduceOp::SUM;
  Group group = {};
  bool async_op = false;
  std::chrono::milliseconds timeout{0};
};

struct ReduceOptions {
  std::optional<int> dst = {};  ///< Global rank; neither given: 0.
  ReduceOp op = ReduceOp::SUM;
  Group group = {};
  bool async_op = false;
  std::optional<int> group_dst = {};
  std::chrono::milliseconds timeout{0};
};

struct AllGatherOptions {
  Group group = {};
  bool async_op = false;
  std::chrono::milliseconds timeout{0};
};

struct ReduceScatterOptions {
  ReduceOp op = ReduceOp::SUM;
  Group group = {};
  bool async_op = false;
  std::chrono::milliseconds timeout{0};
};

struct BarrierOptions {
  Group group = {};
  bool async_op = false;
  std::chrono::milliseconds timeout{0};
};

struct SendOptions {
  std::optional<int> dst = {};  ///< Global rank; this or group_dst.
  Group group = {};
  int tag = 0;
  std::optional<int> group_dst = {};
  std::chrono::milliseconds timeout{0};
};

struct RecvOptions {
  std::optional<int> src = {};  ///< Global rank; this or group_src.
  Group group = {};
  int tag = 0;
  std::optional<int> group_src = {};
  std::chrono::milliseconds timeout{0};
};

using WorkPtr = std::shared_ptr<Work>;

/// Every rank's `tensor` becomes the source rank's.
TP_API WorkPtr broadcast(const Tensor& tensor, const BroadcastOptions& options = {});

/// Every rank's `tensor` becomes the reduction of all of them.
TP_API WorkPtr all_reduce(const Tensor& tensor, const AllReduceOptions& options = {});

/// The destination rank's `tensor` becomes the reduction of all of them; the others' stay as they are.
TP_API WorkPtr reduce(const Tensor& tensor, const ReduceOptions& options = {});

/// outputs[r] becomes rank r's `input`; one output for each rank, each of the input's size.
TP_API WorkPtr all_gather(const std::vector<Tensor>& outputs, const Tensor& input,
                          const AllGatherOptions& options = {});

/// `output` becomes the inputs one after the other; it has size x as many elements.
TP_API WorkPtr all_gather_single(const Tensor& output, const Tensor& input, const AllGatherOptions& options = {});
TP_API WorkPtr all_gather_into_tensor(const Tensor& output, const Tensor& input, const AllGatherOptions& options = {});

/// `output` becomes the reduction of every rank's inputs[own rank].
TP_API WorkPtr reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs,
                              const ReduceScatterOptions& options = {});

/// The same with the inputs one after the other in one tensor.
TP_API WorkPtr reduce_scatter_single(const Tensor& output, const Tensor& input,
                                     const ReduceScatterOptions& options = {});
TP_API WorkPtr reduce_scatter_tensor(const Tensor& output, const Tensor& input,
                                     const ReduceScatterOptions& options = {});

/// Returns once every rank is here.
TP_API WorkPtr barrier(const BarrierOptions& options = {});

/// Blocks until the receiver has begun to take the elements. Any dtype and layout; the sizes in bytes must agree.
TP_API void send(const Tensor& tensor, const SendOptions& options);

/// Blocks until the elements are here; returns the sender's global rank.
TP_API int recv(const Tensor& tensor, const RecvOptions& options);

}  // namespace tensorplay::distributed
