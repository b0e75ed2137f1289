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
#include <cstdint>
#include <functional>
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

struct GatherOptions {
  std::optional<int> dst = {};  ///< Global rank; neither given: 0.
  Group group = {};
  bool async_op = false;
  std::optional<int> group_dst = {};
  std::chrono::milliseconds timeout{0};
};

struct ScatterOptions {
  std::optional<int> src = {};  ///< Global rank; neither given: 0.
  Group group = {};
  bool async_op = false;
  std::optional<int> group_src = {};
  std::chrono::milliseconds timeout{0};
};

struct AllToAllOptions {
  Group group = {};
  bool async_op = false;
  std::chrono::milliseconds timeout{0};
};

struct AllToAllSingleOptions {
  std::vector<std::int64_t> output_split_sizes = {};  ///< Rows from each rank; empty: equally many.
  std::vector<std::int64_t> input_split_sizes = {};   ///< Rows for each rank; empty: equally many.
  Group group = {};
  bool async_op = false;
  std::chrono::milliseconds timeout{0};
};

struct MonitoredBarrierOptions {
  Group group = {};
  std::optional<std::chrono::milliseconds> timeout = {};  ///< The group's.
  bool wait_all_ranks = false;                            ///< Name every rank that did not come, not only the first.
};

struct CoalescedOptions {
  Group group = {};
  bool async_op = false;
};

using WorkPtr = std::shared_ptr<Work>;

/// Every rank's `tensor` becomes the source rank's.
TP_API WorkPtr broadcast(const Tensor& tensor, const BroadcastOptions& options = {});

/// Every rank's `tensor` becomes the reduction of all of them.
TP_API WorkPtr all_reduce(const Tensor& tensor, const AllReduceOptions& options = {});

/// The destination rank's `tensor` becomes the reduction of all of them; the others' stay as they are.
TP_API WorkPtr reduce(const Tensor& tensor, const ReduceOptions& options = {});

/// Each of `tensors` is reduced as by all_reduce, with one Work for all.
TP_API WorkPtr all_reduce_coalesced(const std::vector<Tensor>& tensors, const AllReduceOptions& options = {});

/// outputs[r] becomes rank r's `input`; one output for each rank, of that rank's input's size. Sizes may differ between
/// ranks; all ranks pass the same ones.
TP_API WorkPtr all_gather(const std::vector<Tensor>& outputs, const Tensor& input,
                          const AllGatherOptions& options = {});

/// output_lists[i] is filled from inputs[i], with one Work for all.
TP_API WorkPtr all_gather_coalesced(const std::vector<std::vector<Tensor>>& output_lists,
                                    const std::vector<Tensor>& inputs, const AllGatherOptions& options = {});

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

/// The destination's gather_list[r] becomes rank r's `tensor`; the list is empty everywhere else. Sizes may differ.
TP_API WorkPtr gather(const Tensor& tensor, const std::vector<Tensor>& gather_list = {},
                      const GatherOptions& options = {});

/// The same into one tensor of size x as many elements, given on the destination only.
TP_API WorkPtr gather_single(const Tensor& tensor, const Tensor& gather_tensor = {}, const GatherOptions& options = {});
TP_API WorkPtr gather_into_tensor(const Tensor& tensor, const Tensor& gather_tensor = {},
                                  const GatherOptions& options = {});

/// `tensor` becomes the source's scatter_list[own rank]; the list is empty everywhere else. Sizes may differ.
TP_API WorkPtr scatter(const Tensor& tensor, const std::vector<Tensor>& scatter_list = {},
                       const ScatterOptions& options = {});

/// outputs[r] becomes rank r's inputs[own rank]. Sizes may differ from pair to pair; both sides know them.
TP_API WorkPtr all_to_all(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                          const AllToAllOptions& options = {});

/// The same with rows (slices of dimension 0) of one tensor: the first input_split_sizes[0] go to rank 0, and so on.
TP_API WorkPtr all_to_all_single(const Tensor& output, const Tensor& input, const AllToAllSingleOptions& options = {});

/// Returns once every rank is here.
TP_API WorkPtr barrier(const BarrierOptions& options = {});

/// A barrier that says who did not come: at the timeout every rank that is here throws DistBackendError with one text,
/// "Rank 1 failed to pass monitoredBarrier in 2000 ms", what the transport said, and the peer's address. The group is
/// unusable then. Needs a backend that can; of those built in, gloo. Blocks; what was asked for before is awaited
/// first.
TP_API void monitored_barrier(const MonitoredBarrierOptions& options = {});

/// Starts the collectives that `body` calls on the group together and waits once for all, or returns one Work. Each of
/// them returns null. An exception of `body` goes through; what was started completes, and the group stays usable.
TP_API WorkPtr coalesced(const std::function<void()>& body, const CoalescedOptions& options = {});

}  // namespace tensorplay::distributed
