#include "tensorplay/distributed/point_to_point.hpp"

#include "runtime/group/call.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <string>

namespace tensorplay::distributed {
namespace {

constexpr int kAnySource = -1;

void check_tag(int tag, const char* call) {
  if (tag < 0) throw InvalidArgument(std::string(call) + ": tag " + std::to_string(tag) + " is negative");
}

int destination_of(const ProcessGroup& group, const Tensor& tensor, const SendOptions& options, const char* call) {
  check_defined(tensor, call);
  check_tag(options.tag, call);
  const int destination = group_rank(group, options.dst, options.group_dst, call, false);
  if (destination == group.rank()) throw InvalidArgument(std::string(call) + ": the destination is this rank itself");
  return destination;
}

int source_of(const ProcessGroup& group, const Tensor& tensor, const RecvOptions& options, const char* call) {
  check_defined(tensor, call);
  check_tag(options.tag, call);
  if (!options.src && !options.group_src) {
    if (group.size() == 1) throw InvalidArgument(std::string(call) + ": there is no other rank in the group");
    return kAnySource;
  }
  const int source = group_rank(group, options.src, options.group_src, call, false);
  if (source == group.rank()) throw InvalidArgument(std::string(call) + ": the source is this rank itself");
  return source;
}

WorkPtr start_send(const ProcessGroup& group, const Tensor& tensor, int destination, const SendOptions& options,
                   bool async_op) {
  return group.backend_for(tensor.device().type).send(tensor, destination, options.tag, {options.timeout, async_op});
}

WorkPtr start_recv(const ProcessGroup& group, const Tensor& tensor, int source, const RecvOptions& options,
                   bool async_op) {
  auto& backend = group.backend_for(tensor.device().type);
  const CallOptions call{options.timeout, async_op};
  return source == kAnySource ? backend.recv_any_source(tensor, options.tag, call)
                              : backend.recv(tensor, source, options.tag, call);
}

SendOptions to_send(const PeerOptions& options) {
  return {.dst = options.peer, .group = options.group, .tag = options.tag, .group_dst = options.group_peer};
}

RecvOptions to_recv(const PeerOptions& options) {
  return {.src = options.peer, .group = options.group, .tag = options.tag, .group_src = options.group_peer};
}

void check_peer(const PeerOptions& options) {
  if (!options.peer && !options.group_peer) throw InvalidArgument("P2POp: the peer is missing");
}

}  // namespace

void send(const Tensor& tensor, const SendOptions& options) {
  const auto group = enter(options.group, "send");
  if (group) start_send(*group, tensor, destination_of(*group, tensor, options, "send"), options, false);
}

int recv(const Tensor& tensor, const RecvOptions& options) {
  const auto group = enter(options.group, "recv");
  if (!group) return -1;
  const auto work = start_recv(*group, tensor, source_of(*group, tensor, options, "recv"), options, false);
  return group->global_rank_of(work->source_rank());
}

WorkPtr isend(const Tensor& tensor, const SendOptions& options) {
  const auto group = enter(options.group, "isend");
  if (!group) return nullptr;
  return start_send(*group, tensor, destination_of(*group, tensor, options, "isend"), options, true);
}

WorkPtr irecv(const Tensor& tensor, const RecvOptions& options) {
  const auto group = enter(options.group, "irecv");
  if (!group) return nullptr;
  return start_recv(*group, tensor, source_of(*group, tensor, options, "irecv"), options, true);
}

P2POp::P2POp(Send op, Tensor tensor, PeerOptions options)
    : is_send_(true), tensor_(std::move(tensor)), options_(std::move(options)) {
  if (op != &isend) throw InvalidArgument("P2POp: the operation has to be isend or irecv");
  check_peer(options_);
}

P2POp::P2POp(Recv op, Tensor tensor, PeerOptions options)
    : is_send_(false), tensor_(std::move(tensor)), options_(std::move(options)) {
  if (op != &irecv) throw InvalidArgument("P2POp: the operation has to be isend or irecv");
  check_peer(options_);
}

std::vector<WorkPtr> batch_isend_irecv(const std::vector<P2POp>& operations) {
  const char* const call = "batch_isend_irecv";
  if (operations.empty()) throw InvalidArgument("batch_isend_irecv: the list is empty");
  const auto group = enter(operations.front().options().group, call);
  if (!group) return {};
  for (const auto& operation : operations) {
    const auto other = operation.options().group ? operation.options().group : get_default_group();
    if (other != group) throw InvalidArgument("batch_isend_irecv: all operations need to use the same group");
    if (operation.is_send()) {
      destination_of(*group, operation.tensor(), to_send(operation.options()), call);
    } else {
      source_of(*group, operation.tensor(), to_recv(operation.options()), call);
    }
    group->backend_for(operation.tensor().device().type);
  }
  std::vector<WorkPtr> works;
  for (const auto& operation : operations) {
    works.push_back(operation.is_send() ? isend(operation.tensor(), to_send(operation.options()))
                                        : irecv(operation.tensor(), to_recv(operation.options())));
  }
  return works;
}

}  // namespace tensorplay::distributed
