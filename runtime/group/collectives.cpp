/// Broadcast, reductions and barriers.
#include "tensorplay/distributed/collectives.hpp"

#include "runtime/group/call.hpp"
#include "runtime/tensor/fold.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <string>

namespace tensorplay::distributed {
namespace {

/// Barriers have no tensor: the CPU's backend does, else whichever there is.
Backend& barrier_backend(const ProcessGroup& group) {
  if (group.backends().empty() || group.backends().contains(DeviceType::kCPU))
    return group.backend_for(DeviceType::kCPU);
  return *group.backends().begin()->second;
}

}  // namespace

WorkPtr broadcast(const Tensor& tensor, const BroadcastOptions& options) {
  const auto group = enter(options.group, "broadcast");
  if (!group) return nullptr;
  check_defined(tensor, "broadcast");
  const int root = group_rank(*group, options.src, options.group_src, "broadcast");
  auto& backend = group->backend_for(tensor.device().type);
  return leave(*group, backend.broadcast(tensor, root, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr all_reduce(const Tensor& tensor, const AllReduceOptions& options) {
  const auto group = enter(options.group, "all_reduce");
  if (!group) return nullptr;
  check_defined(tensor, "all_reduce");
  check_can_fold(options.op, tensor.dtype());
  auto& backend = group->backend_for(tensor.device().type);
  return leave(*group, backend.all_reduce(tensor, options.op, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr all_reduce_coalesced(const std::vector<Tensor>& tensors, const AllReduceOptions& options) {
  const auto group = enter(options.group, "all_reduce_coalesced");
  if (!group) return nullptr;
  if (tensors.empty()) throw InvalidArgument("all_reduce_coalesced: the list is empty");
  for (const auto& tensor : tensors) {
    check_defined(tensor, "all_reduce_coalesced");
    check_can_fold(options.op, tensor.dtype());
    if (tensor.device().type != tensors.front().device().type) {
      throw InvalidArgument("all_reduce_coalesced: the tensors are on different devices");
    }
  }
  auto& backend = group->backend_for(tensors.front().device().type);
  return leave(*group,
               backend.all_reduce_coalesced(tensors, options.op, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr reduce(const Tensor& tensor, const ReduceOptions& options) {
  const auto group = enter(options.group, "reduce");
  if (!group) return nullptr;
  check_defined(tensor, "reduce");
  check_can_fold(options.op, tensor.dtype());
  const int root = group_rank(*group, options.dst, options.group_dst, "reduce");
  auto& backend = group->backend_for(tensor.device().type);
  return leave(*group, backend.reduce(tensor, root, options.op, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, const ReduceScatterOptions& options) {
  const auto group = enter(options.group, "reduce_scatter");
  if (!group) return nullptr;
  check_defined(output, "reduce_scatter");
  check_can_fold(options.op, output.dtype());
  check_list(inputs, output, *group, true, "reduce_scatter");
  auto& backend = group->backend_for(output.device().type);
  return leave(*group,
               backend.reduce_scatter(output, inputs, options.op, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceScatterOptions& options) {
  const auto group = enter(options.group, "reduce_scatter_single");
  if (!group) return nullptr;
  check_single(input, output, *group, "reduce_scatter_single");
  check_can_fold(options.op, output.dtype());
  auto& backend = group->backend_for(output.device().type);
  return leave(*group,
               backend.reduce_scatter_single(output, input, options.op, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr reduce_scatter_tensor(const Tensor& output, const Tensor& input, const ReduceScatterOptions& options) {
  return reduce_scatter_single(output, input, options);
}

WorkPtr barrier(const BarrierOptions& options) {
  const auto group = enter(options.group, "barrier");
  if (!group) return nullptr;
  return leave(*group, barrier_backend(*group).barrier(how(*group, options.timeout, options.async_op)),
               options.async_op);
}

void monitored_barrier(const MonitoredBarrierOptions& options) {
  const auto group = enter(options.group, "monitored_barrier");
  if (!group) return;
  if (options.timeout && options.timeout->count() <= 0) {
    throw InvalidArgument("monitored_barrier: the timeout has to be positive");
  }
  if (!group->backends().empty() && !group->backends().contains(DeviceType::kCPU)) {
    throw InvalidArgument("monitored_barrier requires a group with a CPU-capable backend (e.g. gloo); this one has " +
                          group->backend_config());
  }
  group->backend_for(DeviceType::kCPU)
      .monitored_barrier(options.timeout.value_or(group->timeout()), options.wait_all_ranks);
}

}  // namespace tensorplay::distributed
