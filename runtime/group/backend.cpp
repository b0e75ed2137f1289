#include "tensorplay/distributed/backend.hpp"

#include "runtime/group/composed_work.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

[[noreturn]] void refuse(const Backend& backend, OpType operation) {
  throw NotImplementedError("backend " + backend.name() + " does not support " + std::string(to_string(operation)));
}

/// The parts of a whole that is contiguous, each of `like`'s size; flat.
std::vector<Tensor> equal_parts(const Tensor& whole, std::int64_t count, int parts) {
  const Tensor flat = whole.flatten();
  std::vector<Tensor> result;
  for (int part = 0; part < parts; ++part) result.push_back(flat.slice(0, part * count, (part + 1) * count));
  return result;
}

std::vector<Tensor> rows(const Tensor& whole, const std::vector<std::int64_t>& splits) {
  std::vector<Tensor> result;
  std::int64_t start = 0;
  for (const auto length : splits) {
    result.push_back(whole.slice(0, start, start + length));
    start += length;
  }
  return result;
}

}  // namespace

PGOptions::~PGOptions() = default;

Backend::Backend(BackendOptions options) : options_(std::move(options)), timeout_(options_.timeout) {}
Backend::~Backend() = default;

std::chrono::milliseconds Backend::limit_of(const CallOptions& call) const noexcept {
  return call.timeout.count() > 0 ? call.timeout : timeout();
}

Backend::WorkPtr Backend::broadcast(const Tensor&, int, const CallOptions&) {
  refuse(*this, OpType::BROADCAST);
}
Backend::WorkPtr Backend::all_reduce(const Tensor&, const ReduceOp&, const CallOptions&) {
  refuse(*this, OpType::ALLREDUCE);
}
Backend::WorkPtr Backend::all_reduce_coalesced(const Tensors& tensors, const ReduceOp& op, const CallOptions& call) {
  std::vector<WorkPtr> works;
  for (const auto& tensor : tensors) works.push_back(all_reduce(tensor, op, call));
  return compose_works("all_reduce_coalesced", std::move(works));
}
Backend::WorkPtr Backend::reduce(const Tensor&, int, const ReduceOp&, const CallOptions&) {
  refuse(*this, OpType::REDUCE);
}
Backend::WorkPtr Backend::all_gather(const Tensors&, const Tensor&, const CallOptions&) {
  refuse(*this, OpType::ALLGATHER);
}
Backend::WorkPtr Backend::all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call) {
  if (!output.is_contiguous()) refuse(*this, OpType::ALLGATHER_SINGLE);
  return all_gather(equal_parts(output, input.numel(), size()), input, call);
}
Backend::WorkPtr Backend::gather(const Tensors&, const Tensor&, int, const CallOptions&) {
  refuse(*this, OpType::GATHER);
}
Backend::WorkPtr Backend::scatter(const Tensor&, const Tensors&, int, const CallOptions&) {
  refuse(*this, OpType::SCATTER);
}
Backend::WorkPtr Backend::reduce_scatter(const Tensor&, const Tensors&, const ReduceOp&, const CallOptions&) {
  refuse(*this, OpType::REDUCE_SCATTER);
}
Backend::WorkPtr Backend::reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                                const CallOptions& call) {
  return reduce_scatter(output, equal_parts(input.contiguous(), output.numel(), size()), op, call);
}
Backend::WorkPtr Backend::all_to_all(const Tensors&, const Tensors&, const CallOptions&) {
  refuse(*this, OpType::ALLTOALL);
}
Backend::WorkPtr Backend::all_to_all_single(const Tensor& output, const Tensor& input,
                                            const std::vector<std::int64_t>& output_splits,
                                            const std::vector<std::int64_t>& input_splits, const CallOptions& call) {
  return all_to_all(rows(output, output_splits), rows(input, input_splits), call);
}
Backend::WorkPtr Backend::barrier(const CallOptions&) {
  refuse(*this, OpType::BARRIER);
}
void Backend::monitored_barrier(std::chrono::milliseconds, bool) {
  refuse(*this, OpType::MONITORED_BARRIER);
}
Backend::WorkPtr Backend::send(const Tensor&, int, int, const CallOptions&) {
  refuse(*this, OpType::SEND);
}
Backend::WorkPtr Backend::recv(const Tensor&, int, int, const CallOptions&) {
  refuse(*this, OpType::RECV);
}
Backend::WorkPtr Backend::recv_any_source(const Tensor&, int, const CallOptions&) {
  refuse(*this, OpType::RECVANYSOURCE);
}

void Backend::abort(const std::string&) {}
void Backend::shutdown() {}
void Backend::set_timeout(std::chrono::milliseconds timeout) {
  timeout_ = timeout;
}

}  // namespace tensorplay::distributed
