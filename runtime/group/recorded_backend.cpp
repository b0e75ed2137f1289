#include "runtime/group/recorded_backend.hpp"

#include <utility>

namespace tensorplay::distributed {

constinit std::atomic<CallSink*> g_call_sink{nullptr};

namespace {

CallSink* sink() noexcept {
  return g_call_sink.load(std::memory_order_acquire);
}

std::int64_t elements_of(const std::vector<Tensor>& tensors) {
  std::int64_t count = 0;
  for (const auto& tensor : tensors) count += tensor.numel();
  return count;
}

}  // namespace

RecordedBackend::RecordedBackend(std::shared_ptr<Backend> inner)
    : Backend(inner->options()), inner_(std::move(inner)) {}

void RecordedBackend::set_timeout(std::chrono::milliseconds timeout) {
  Backend::set_timeout(timeout);
  inner_->set_timeout(timeout);
}

CallRecord RecordedBackend::begin(OpType type, const Tensor* in, const Tensor* out, const CallOptions& call,
                                  int peer) const {
  CallRecord record;
  record.type = type;
  record.backend = inner_->name();
  record.group_name = options().group_name;
  record.group_desc = options().group_desc;
  record.group_ranks = options().global_ranks;
  record.rank = rank();
  if (in != nullptr || out != nullptr) record.dtype = (in != nullptr ? in : out)->dtype();
  if (in != nullptr) record.in_elements = in->numel();
  if (out != nullptr) record.out_elements = out->numel();
  record.peer = peer;
  record.is_async = call.async_op;
  record.begin = CallRecord::Clock::now();
  return record;
}

template <typename Run>
Backend::WorkPtr RecordedBackend::told(CallSink& sink, CallRecord record, Run run) {
  WorkPtr work;
  try {
    work = run();
  } catch (...) {
    record.error = std::current_exception();
  }
  record.end = CallRecord::Clock::now();
  if (work) record.sequence = work->sequence_number();
  sink.call_returned(record);
  if (!work) {
    sink.operation_ended(record);
    if (record.error) std::rethrow_exception(record.error);
    return work;
  }
  if (!record.is_async) {
    sink.operation_ended(record);
    return work;
  }
  work->get_future()->add_done_callback([&sink, record = std::move(record)](const Future& done) mutable {
    record.end = CallRecord::Clock::now();
    record.error = done.error();
    sink.operation_ended(record);
  });
  return work;
}

Backend::WorkPtr RecordedBackend::broadcast(const Tensor& tensor, int root, const CallOptions& call) {
  const auto run = [&] { return inner_->broadcast(tensor, root, call); };
  auto* const seen = sink();
  return seen == nullptr ? run() : told(*seen, begin(OpType::BROADCAST, &tensor, &tensor, call, root), run);
}

Backend::WorkPtr RecordedBackend::all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call) {
  const auto run = [&] { return inner_->all_reduce(tensor, op, call); };
  auto* const seen = sink();
  return seen == nullptr ? run() : told(*seen, begin(OpType::ALLREDUCE, &tensor, &tensor, call), run);
}

Backend::WorkPtr RecordedBackend::all_reduce_coalesced(const Tensors& tensors, const ReduceOp& op,
                                                       const CallOptions& call) {
  const auto run = [&] { return inner_->all_reduce_coalesced(tensors, op, call); };
  auto* const seen = sink();
  if (seen == nullptr) return run();
  auto record = begin(OpType::ALLREDUCE_COALESCED, &tensors.front(), nullptr, call);
  record.in_elements = record.out_elements = elements_of(tensors);
  return told(*seen, std::move(record), run);
}

Backend::WorkPtr RecordedBackend::reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call) {
  const auto run = [&] { return inner_->reduce(tensor, root, op, call); };
  auto* const seen = sink();
  return seen == nullptr ? run() : told(*seen, begin(OpType::REDUCE, &tensor, &tensor, call, root), run);
}

Backend::WorkPtr RecordedBackend::all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call) {
  const auto run = [&] { return inner_->all_gather(outputs, input, call); };
  auto* const seen = sink();
  if (seen == nullptr) return run();
  auto record = begin(OpType::ALLGATHER, &input, nullptr, call);
  record.out_elements = elements_of(outputs);
  return told(*seen, std::move(record), run);
}

Backend::WorkPtr RecordedBackend::all_gather_single(const Tensor& output, const Tensor& input,
                                                    const CallOptions& call) {
  const auto run = [&] { return inner_->all_gather_single(output, input, call); };
  auto* const seen = sink();
  return seen == nullptr ? run() : told(*seen, begin(OpType::ALLGATHER_SINGLE, &input, &output, call), run);
}

Backend::WorkPtr RecordedBackend::gather(const Tensors& outputs, const Tensor& input, int root,
                                         const CallOptions& call) {
  const auto run = [&] { return inner_->gather(outputs, input, root, call); };
  auto* const seen = sink();
  if (seen == nullptr) return run();
  auto record = begin(OpType::GATHER, &input, nullptr, call, root);
  record.out_elements = elements_of(outputs);
  return told(*seen, std::move(record), run);
}

Backend::WorkPtr RecordedBackend::scatter(const Tensor& output, const Tensors& inputs, int root,
                                          const CallOptions& call) {
  const auto run = [&] { return inner_->scatter(output, inputs, root, call); };
  auto* const seen = sink();
  if (seen == nullptr) return run();
  auto record = begin(OpType::SCATTER, nullptr, &output, call, root);
  record.in_elements = elements_of(inputs);
  return told(*seen, std::move(record), run);
}

Backend::WorkPtr RecordedBackend::reduce_scatter(const Tensor& output, const Tensors& inputs, const ReduceOp& op,
                                                 const CallOptions& call) {
  const auto run = [&] { return inner_->reduce_scatter(output, inputs, op, call); };
  auto* const seen = sink();
  if (seen == nullptr) return run();
  auto record = begin(OpType::REDUCE_SCATTER, nullptr, &output, call);
  record.in_elements = elements_of(inputs);
  return told(*seen, std::move(record), run);
}

Backend::WorkPtr RecordedBackend::reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                                        const CallOptions& call) {
  const auto run = [&] { return inner_->reduce_scatter_single(output, input, op, call); };
  auto* const seen = sink();
  return seen == nullptr ? run() : told(*seen, begin(OpType::REDUCE_SCATTER_SINGLE, &input, &output, call), run);
}

Backend::WorkPtr RecordedBackend::all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call) {
  const auto run = [&] { return inner_->all_to_all(outputs, inputs, call); };
  auto* const seen = sink();
  if (seen == nullptr) return run();
  auto record = begin(OpType::ALLTOALL, inputs.empty() ? nullptr : &inputs.front(), nullptr, call);
  record.in_elements = elements_of(inputs);
  record.out_elements = elements_of(outputs);
  return told(*seen, std::move(record), run);
}

Backend::WorkPtr RecordedBackend::all_to_all_single(const Tensor& output, const Tensor& input,
                                                    const std::vector<std::int64_t>& output_splits,
                                                    const std::vector<std::int64_t>& input_splits,
                                                    const CallOptions& call) {
  const auto run = [&] { return inner_->all_to_all_single(output, input, output_splits, input_splits, call); };
  auto* const seen = sink();
  if (seen == nullptr) return run();
  auto record = begin(OpType::ALLTOALL_SINGLE, &input, &output, call);
  record.in_splits = input_splits;
  record.out_splits = output_splits;
  return told(*seen, std::move(record), run);
}

Backend::WorkPtr RecordedBackend::barrier(const CallOptions& call) {
  const auto run = [&] { return inner_->barrier(call); };
  auto* const seen = sink();
  return seen == nullptr ? run() : told(*seen, begin(OpType::BARRIER, nullptr, nullptr, call), run);
}

void RecordedBackend::monitored_barrier(std::chrono::milliseconds timeout, bool wait_all_ranks) {
  const auto run = [&]() -> WorkPtr {
    inner_->monitored_barrier(timeout, wait_all_ranks);
    return nullptr;
  };
  auto* const seen = sink();
  if (seen == nullptr) {
    run();
  } else {
    told(*seen, begin(OpType::MONITORED_BARRIER, nullptr, nullptr, {}), run);
  }
}

Backend::WorkPtr RecordedBackend::send(const Tensor& tensor, int destination, int tag, const CallOptions& call) {
  const auto run = [&] { return inner_->send(tensor, destination, tag, call); };
  auto* const seen = sink();
  return seen == nullptr ? run() : told(*seen, begin(OpType::SEND, &tensor, nullptr, call, destination), run);
}

Backend::WorkPtr RecordedBackend::recv(const Tensor& tensor, int source, int tag, const CallOptions& call) {
  const auto run = [&] { return inner_->recv(tensor, source, tag, call); };
  auto* const seen = sink();
  return seen == nullptr ? run() : told(*seen, begin(OpType::RECV, nullptr, &tensor, call, source), run);
}

Backend::WorkPtr RecordedBackend::recv_any_source(const Tensor& tensor, int tag, const CallOptions& call) {
  const auto run = [&] { return inner_->recv_any_source(tensor, tag, call); };
  auto* const seen = sink();
  return seen == nullptr ? run() : told(*seen, begin(OpType::RECVANYSOURCE, nullptr, &tensor, call), run);
}

}  // namespace tensorplay::distributed
