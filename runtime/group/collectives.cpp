#include "tensorplay/distributed/collectives.hpp"

#include "runtime/tensor/fold.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <optional>
#include <string>

namespace tensorplay::distributed {
namespace {

Group resolve(const Group& group) {
  return group ? group : get_default_group();
}

void check_defined(const Tensor& tensor, const char* call) {
  if (!tensor.defined()) throw InvalidArgument(std::string(call) + ": the tensor is not defined");
}

/// A root given as a global or as a group rank, to a group rank.
int group_rank(const ProcessGroup& group, std::optional<int> global, std::optional<int> in_group, const char* call,
               std::optional<int> default_global) {
  if (global && in_group) throw InvalidArgument(std::string(call) + ": give a global rank or a group rank, not both");
  if (in_group) {
    group.global_rank_of(*in_group);  // Throws for a rank that is none.
    return *in_group;
  }
  if (!global && !default_global) throw InvalidArgument(std::string(call) + ": the other rank is missing");
  return group.group_rank_of(global ? *global : *default_global);
}

void check_same_kind(const Tensor& a, const Tensor& b, const char* call) {
  check_defined(b, call);
  if (a.dtype() != b.dtype() || a.device().type != b.device().type) {
    throw InvalidArgument(std::string(call)
                              .append(": the tensors differ: ")
                              .append(to_string(a.dtype()))
                              .append(" on ")
                              .append(to_string(a.device()))
                              .append(" and ")
                              .append(to_string(b.dtype()))
                              .append(" on ")
                              .append(to_string(b.device())));
  }
}

void check_list(const std::vector<Tensor>& list, const Tensor& one, int size, const char* call) {
  if (static_cast<int>(list.size()) != size) {
    throw InvalidArgument(std::string(call) + ": " + std::to_string(list.size()) + " tensors for a group of " +
                          std::to_string(size) + " ranks");
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_same_kind(one, list[i], call);
    if (list[i].numel() != one.numel()) {
      throw InvalidArgument(std::string(call) + ": tensor " + std::to_string(i) + " has shape " +
                            tensorplay::to_string(list[i].shape()) + ", the other side " +
                            tensorplay::to_string(one.shape()));
    }
  }
}

void check_single(const Tensor& whole, const Tensor& part, int size, const char* call) {
  check_defined(whole, call);
  check_defined(part, call);
  check_same_kind(whole, part, call);
  if (whole.numel() != part.numel() * size) {
    throw InvalidArgument(std::string(call) + ": " + std::to_string(whole.numel()) + " elements are not " +
                          std::to_string(size) + " times " + std::to_string(part.numel()));
  }
}

/// What the caller of a synchronous operation gets: nothing to wait for.
WorkPtr to_caller(WorkPtr work, bool async_op) {
  return async_op ? work : nullptr;
}

}  // namespace

WorkPtr broadcast(const Tensor& tensor, const BroadcastOptions& options) {
  check_defined(tensor, "broadcast");
  const auto group = resolve(options.group);
  const int root = group_rank(*group, options.src, options.group_src, "broadcast", 0);
  auto& backend = group->backend_for(tensor.device().type);
  return to_caller(backend.broadcast(tensor, root, {options.timeout, options.async_op}), options.async_op);
}

WorkPtr all_reduce(const Tensor& tensor, const AllReduceOptions& options) {
  check_defined(tensor, "all_reduce");
  check_can_fold(options.op, tensor.dtype());
  const auto group = resolve(options.group);
  auto& backend = group->backend_for(tensor.device().type);
  return to_caller(backend.all_reduce(tensor, options.op, {options.timeout, options.async_op}), options.async_op);
}

WorkPtr reduce(const Tensor& tensor, const ReduceOptions& options) {
  check_defined(tensor, "reduce");
  check_can_fold(options.op, tensor.dtype());
  const auto group = resolve(options.group);
  const int root = group_rank(*group, options.dst, options.group_dst, "reduce", 0);
  auto& backend = group->backend_for(tensor.device().type);
  return to_caller(backend.reduce(tensor, root, options.op, {options.timeout, options.async_op}), options.async_op);
}

WorkPtr all_gather(const std::vector<Tensor>& outputs, const Tensor& input, const AllGatherOptions& options) {
  check_defined(input, "all_gather");
  const auto group = resolve(options.group);
  check_list(outputs, input, group->size(), "all_gather");
  auto& backend = group->backend_for(input.device().type);
  return to_caller(backend.all_gather(outputs, input, {options.timeout, options.async_op}), options.async_op);
}

WorkPtr all_gather_single(const Tensor& output, const Tensor& input, const AllGatherOptions& options) {
  const auto group = resolve(options.group);
  check_single(output, input, group->size(), "all_gather_single");
  auto& backend = group->backend_for(input.device().type);
  return to_caller(backend.all_gather_single(output, input, {options.timeout, options.async_op}), options.async_op);
}

WorkPtr all_gather_into_tensor(const Tensor& output, const Tensor& input, const AllGatherOptions& options) {
  return all_gather_single(output, input, options);
}

WorkPtr reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, const ReduceScatterOptions& options) {
  check_defined(output, "reduce_scatter");
  check_can_fold(options.op, output.dtype());
  const auto group = resolve(options.group);
  check_list(inputs, output, group->size(), "reduce_scatter");
  auto& backend = group->backend_for(output.device().type);
  return to_caller(backend.reduce_scatter(output, inputs, options.op, {options.timeout, options.async_op}),
                   options.async_op);
}

WorkPtr reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceScatterOptions& options) {
  const auto group = resolve(options.group);
  check_single(input, output, group->size(), "reduce_scatter_single");
  check_can_fold(options.op, output.dtype());
  auto& backend = group->backend_for(output.device().type);
  return to_caller(backend.reduce_scatter_single(output, input, options.op, {options.timeout, options.async_op}),
                   options.async_op);
}

WorkPtr reduce_scatter_tensor(const Tensor& output, const Tensor& input, const ReduceScatterOptions& options) {
  return reduce_scatter_single(output, input, options);
}

WorkPtr barrier(const BarrierOptions& options) {
  const auto group = resolve(options.group);
  auto& backend = group->backend_for(DeviceType::kCPU);
  return to_caller(backend.barrier({options.timeout, options.async_op}), options.async_op);
}

void send(const Tensor& tensor, const SendOptions& options) {
  check_defined(tensor, "send");
  const auto group = resolve(options.group);
  const int destination = group_rank(*group, options.dst, options.group_dst, "send", std::nullopt);
  if (destination == group->rank()) throw InvalidArgument("send: the destination is this rank itself");
  if (options.tag < 0) throw InvalidArgument("send: tag " + std::to_string(options.tag) + " is negative");
  group->backend_for(tensor.device().type).send(tensor, destination, options.tag, {options.timeout, false});
}

int recv(const Tensor& tensor, const RecvOptions& options) {
  check_defined(tensor, "recv");
  const auto group = resolve(options.group);
  const int source = group_rank(*group, options.src, options.group_src, "recv", std::nullopt);
  if (source == group->rank()) throw InvalidArgument("recv: the source is this rank itself");
  if (options.tag < 0) throw InvalidArgument("recv: tag " + std::to_string(options.tag) + " is negative");
  const auto work =
      group->backend_for(tensor.device().type).recv(tensor, source, options.tag, {options.timeout, false});
  return group->global_rank_of(work->source_rank());
}

}  // namespace tensorplay::distributed
