#include "runtime/group/checked_backend.hpp"

#include "runtime/base/log.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tensorplay::distributed {
namespace {

constexpr std::chrono::milliseconds kDrainLimit = std::chrono::seconds(5);

std::vector<std::int64_t> counts_of(const std::vector<Tensor>& tensors) {
  std::vector<std::int64_t> counts;
  for (const auto& tensor : tensors) counts.push_back(tensor.numel());
  return counts;
}

std::vector<std::int64_t> same_for_all(int size, std::int64_t count) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(size), count);
}

/// A count for one rank, nothing told of the others.
std::vector<std::int64_t> only_for(int size, int rank, std::int64_t count) {
  auto counts = same_for_all(size, Fingerprint::kUntold);
  counts[static_cast<std::size_t>(rank)] = count;
  return counts;
}

std::vector<std::int64_t> elements_of_rows(const Tensor& tensor, std::vector<std::int64_t> splits) {
  const std::int64_t rows = tensor.size(0);
  for (auto& split : splits) split *= rows == 0 ? 0 : tensor.numel() / rows;
  return splits;
}

/// Every rank's `mine`, over the backend itself.
std::vector<std::vector<std::int64_t>> gather_counts(Backend& backend, const std::vector<std::int64_t>& mine,
                                                     const CallOptions& call) {
  const auto count = static_cast<std::int64_t>(mine.size());
  Tensor input = empty({count}, DType::kInt64);
  std::copy(mine.begin(), mine.end(), input.data<std::int64_t>());
  Tensor all = empty({backend.size() * count}, DType::kInt64);
  backend.all_gather_single(all, input, call);
  std::vector<std::vector<std::int64_t>> result;
  for (int rank = 0; rank < backend.size(); ++rank) {
    const std::int64_t* first = all.data<std::int64_t>() + rank * count;
    result.emplace_back(first, first + count);
  }
  return result;
}

}  // namespace

CheckedBackend::CheckedBackend(std::shared_ptr<Backend> inner) : Backend(inner->options()), inner_(std::move(inner)) {}

CheckedBackend::~CheckedBackend() {
  shutdown();
}

void CheckedBackend::compare(const std::string& what, const Fingerprint& mine, const CallOptions& call) {
  base::log::trace([&] { return what + " in group " + options().group_name + ": " + mine.text; });
  if (size() == 1 || cannot_compare_) return;
  std::string difference;
  try {
    Tensor input = zeros({static_cast<std::int64_t>(kFingerprintBytes)}, DType::kUInt8);
    std::memcpy(input.data(), mine.text.data(), std::min(mine.text.size(), kFingerprintBytes - 1));
    Tensor all = empty({size() * input.numel()}, DType::kUInt8);
    inner_->all_gather_single(all, input, call);
    std::vector<std::string> texts;
    for (int rank = 0; rank < size(); ++rank) {
      texts.emplace_back(static_cast<const char*>(all.data()) + static_cast<std::size_t>(rank) * kFingerprintBytes);
    }
    difference = describe_difference(texts);
    if (difference.empty() && mine.has_pairs()) {
      const auto sends = gather_counts(*inner_, mine.sends, call);
      difference = describe_pair_difference(sends, gather_counts(*inner_, mine.expects, call));
    }
  } catch (const NotImplementedError& error) {
    cannot_compare_ = true;  // As on every rank: it is the same backend.
    base::log::warning(std::string("DETAIL: calls are not compared: ") + error.what());
    return;
  } catch (const DistBackendError& error) {
    throw DistBackendError(what + ", comparing the ranks' calls: " + error.what());
  }
  if (!difference.empty()) throw DistBackendError(what + ": the ranks' calls differ: " + difference);
}

Backend::WorkPtr CheckedBackend::submit(OpType type, const CallOptions& call, Fingerprint mine, Run run) {
  const std::string name(to_string(type));
  const CallOptions blocking{call.timeout, false};
  return executor_.submit(name, call.async_op,
                          [this, name, blocking, mine = std::move(mine), run = std::move(run)](std::uint64_t sequence) {
                            compare(name + " #" + std::to_string(sequence), mine, blocking);
                            const auto work = run(blocking);
                            return work ? work->result() : Tensors{};
                          });
}

Backend::WorkPtr CheckedBackend::broadcast(const Tensor& tensor, int root, const CallOptions& call) {
  return submit(OpType::BROADCAST, call, fingerprint_of(OpType::BROADCAST, tensor, root),
                [this, tensor, root](const auto& how) { return inner_->broadcast(tensor, root, how); });
}

Backend::WorkPtr CheckedBackend::all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call) {
  return submit(OpType::ALLREDUCE, call, fingerprint_of(OpType::ALLREDUCE, tensor, {}, op),
                [this, tensor, op](const auto& how) { return inner_->all_reduce(tensor, op, how); });
}

Backend::WorkPtr CheckedBackend::all_reduce_coalesced(const Tensors& tensors, const ReduceOp& op,
                                                      const CallOptions& call) {
  auto mine = fingerprint_of(OpType::ALLREDUCE_COALESCED, tensors.front(), {}, op);
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    mine.text.append(i == 1 ? " and of " : ", ").append(std::to_string(tensors[i].numel()));
  }
  return submit(OpType::ALLREDUCE_COALESCED, call, std::move(mine),
                [this, tensors, op](const auto& how) { return inner_->all_reduce_coalesced(tensors, op, how); });
}

Backend::WorkPtr CheckedBackend::reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call) {
  return submit(OpType::REDUCE, call, fingerprint_of(OpType::REDUCE, tensor, root, op),
                [this, tensor, root, op](const auto& how) { return inner_->reduce(tensor, root, op, how); });
}

Backend::WorkPtr CheckedBackend::all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call) {
  return submit(
      OpType::ALLGATHER, call,
      pairwise_fingerprint_of(OpType::ALLGATHER, input, same_for_all(size(), input.numel()), counts_of(outputs)),
      [this, outputs, input](const auto& how) { return inner_->all_gather(outputs, input, how); });
}

Backend::WorkPtr CheckedBackend::all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call) {
  return submit(OpType::ALLGATHER_SINGLE, call, fingerprint_of(OpType::ALLGATHER_SINGLE, input),
                [this, output, input](const auto& how) { return inner_->all_gather_single(output, input, how); });
}

Backend::WorkPtr CheckedBackend::gather(const Tensors& outputs, const Tensor& input, int root,
                                        const CallOptions& call) {
  auto expects = outputs.empty() ? same_for_all(size(), Fingerprint::kUntold) : counts_of(outputs);
  return submit(
      OpType::GATHER, call,
      pairwise_fingerprint_of(OpType::GATHER, input, only_for(size(), root, input.numel()), std::move(expects), root),
      [this, outputs, input, root](const auto& how) { return inner_->gather(outputs, input, root, how); });
}

Backend::WorkPtr CheckedBackend::scatter(const Tensor& output, const Tensors& inputs, int root,
                                         const CallOptions& call) {
  auto sends = inputs.empty() ? same_for_all(size(), Fingerprint::kUntold) : counts_of(inputs);
  return submit(
      OpType::SCATTER, call,
      pairwise_fingerprint_of(OpType::SCATTER, output, std::move(sends), only_for(size(), root, output.numel()), root),
      [this, output, inputs, root](const auto& how) { return inner_->scatter(output, inputs, root, how); });
}

Backend::WorkPtr CheckedBackend::reduce_scatter(const Tensor& output, const Tensors& inputs, const ReduceOp& op,
                                                const CallOptions& call) {
  return submit(
      OpType::REDUCE_SCATTER, call,
      pairwise_fingerprint_of(OpType::REDUCE_SCATTER, output, counts_of(inputs), same_for_all(size(), output.numel()),
                              {}, op),
      [this, output, inputs, op](const auto& how) { return inner_->reduce_scatter(output, inputs, op, how); });
}

Backend::WorkPtr CheckedBackend::reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                                       const CallOptions& call) {
  return submit(
      OpType::REDUCE_SCATTER_SINGLE, call, fingerprint_of(OpType::REDUCE_SCATTER_SINGLE, output, {}, op),
      [this, output, input, op](const auto& how) { return inner_->reduce_scatter_single(output, input, op, how); });
}

Backend::WorkPtr CheckedBackend::all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call) {
  return submit(OpType::ALLTOALL, call,
                pairwise_fingerprint_of(OpType::ALLTOALL, outputs.front(), counts_of(inputs), counts_of(outputs)),
                [this, outputs, inputs](const auto& how) { return inner_->all_to_all(outputs, inputs, how); });
}

Backend::WorkPtr CheckedBackend::all_to_all_single(const Tensor& output, const Tensor& input,
                                                   const std::vector<std::int64_t>& output_splits,
                                                   const std::vector<std::int64_t>& input_splits,
                                                   const CallOptions& call) {
  return submit(OpType::ALLTOALL_SINGLE, call,
                pairwise_fingerprint_of(OpType::ALLTOALL_SINGLE, input, elements_of_rows(input, input_splits),
                                        elements_of_rows(output, output_splits)),
                [this, output, input, output_splits, input_splits](const auto& how) {
                  return inner_->all_to_all_single(output, input, output_splits, input_splits, how);
                });
}

Backend::WorkPtr CheckedBackend::barrier(const CallOptions& call) {
  return submit(OpType::BARRIER, call, fingerprint_of(OpType::BARRIER, Tensor()),
                [this](const auto& how) { return inner_->barrier(how); });
}

void CheckedBackend::monitored_barrier(std::chrono::milliseconds timeout, bool wait_all_ranks) {
  // Not compared: a rank that is elsewhere is what it is there to name.
  executor_.submit("monitored_barrier", false, [this, timeout, wait_all_ranks](std::uint64_t) {
    inner_->monitored_barrier(timeout, wait_all_ranks);
    return Tensors{};
  });
}

Backend::WorkPtr CheckedBackend::send(const Tensor& tensor, int destination, int tag, const CallOptions& call) {
  return inner_->send(tensor, destination, tag, call);
}
Backend::WorkPtr CheckedBackend::recv(const Tensor& tensor, int source, int tag, const CallOptions& call) {
  return inner_->recv(tensor, source, tag, call);
}
Backend::WorkPtr CheckedBackend::recv_any_source(const Tensor& tensor, int tag, const CallOptions& call) {
  return inner_->recv_any_source(tensor, tag, call);
}

void CheckedBackend::abort(const std::string& why) {
  inner_->abort(why);
}

void CheckedBackend::shutdown() {
  executor_.drain(kDrainLimit);
  inner_->shutdown();
  executor_.stop(std::make_exception_ptr(DistBackendError("the group was destroyed before the operation ran")));
}

void CheckedBackend::set_timeout(std::chrono::milliseconds timeout) {
  Backend::set_timeout(timeout);
  inner_->set_timeout(timeout);
}

}  // namespace tensorplay::distributed
