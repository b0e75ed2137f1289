#include "runtime/backend/fake/fake_backend.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <string>
#include <utility>

namespace tensorplay::distributed {

FakeOptions::~FakeOptions() = default;

FakeBackend::FakeBackend(BackendOptions options) : Backend(std::move(options)) {
  const auto* wanted = dynamic_cast<const FakeOptions*>(Backend::options().pg_options.get());
  if (wanted != nullptr) failing_ = wanted->failing;
}

Backend::WorkPtr FakeBackend::done(OpType type, const CallOptions& call, Tensors result, int source) {
  auto work = std::make_shared<Work>(std::string(to_string(type)), sequence_++);
  if (source >= 0) work->set_source_rank(source);
  if (!failing_.contains(type)) {
    work->finish(std::move(result));
    return work;
  }
  const DistBackendError error(work->name() + ": fails, as the fake backend was asked to");
  if (!call.async_op) throw error;
  work->fail(std::make_exception_ptr(error));
  return work;
}

Backend::WorkPtr FakeBackend::broadcast(const Tensor& tensor, int, const CallOptions& call) {
  return done(OpType::BROADCAST, call, {tensor});
}
Backend::WorkPtr FakeBackend::all_reduce(const Tensor& tensor, const ReduceOp&, const CallOptions& call) {
  return done(OpType::ALLREDUCE, call, {tensor});
}
Backend::WorkPtr FakeBackend::reduce(const Tensor& tensor, int, const ReduceOp&, const CallOptions& call) {
  return done(OpType::REDUCE, call, {tensor});
}
Backend::WorkPtr FakeBackend::all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call) {
  Tensor own = outputs[static_cast<std::size_t>(rank())];
  if (own.shape() == input.shape()) own.copy_(input);
  return done(OpType::ALLGATHER, call, outputs);
}
Backend::WorkPtr FakeBackend::gather(const Tensors& outputs, const Tensor& input, int, const CallOptions& call) {
  if (!outputs.empty()) {
    Tensor own = outputs[static_cast<std::size_t>(rank())];
    if (own.shape() == input.shape()) own.copy_(input);
  }
  return done(OpType::GATHER, call, outputs);
}
Backend::WorkPtr FakeBackend::scatter(const Tensor& output, const Tensors& inputs, int, const CallOptions& call) {
  if (!inputs.empty()) {
    const Tensor& own = inputs[static_cast<std::size_t>(rank())];
    if (own.shape() == output.shape()) Tensor(output).copy_(own);
  }
  return done(OpType::SCATTER, call, {output});
}
Backend::WorkPtr FakeBackend::reduce_scatter(const Tensor& output, const Tensors&, const ReduceOp&,
                                             const CallOptions& call) {
  return done(OpType::REDUCE_SCATTER, call, {output});
}
Backend::WorkPtr FakeBackend::all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call) {
  Tensor own = outputs[static_cast<std::size_t>(rank())];
  const Tensor& given = inputs[static_cast<std::size_t>(rank())];
  if (own.shape() == given.shape()) own.copy_(given);
  return done(OpType::ALLTOALL, call, outputs);
}
Backend::WorkPtr FakeBackend::barrier(const CallOptions& call) {
  return done(OpType::BARRIER, call, {});
}
void FakeBackend::monitored_barrier(std::chrono::milliseconds, bool) {
  done(OpType::MONITORED_BARRIER, {}, {});
}
Backend::WorkPtr FakeBackend::send(const Tensor& tensor, int, int, const CallOptions& call) {
  return done(OpType::SEND, call, {tensor});
}
Backend::WorkPtr FakeBackend::recv(const Tensor& tensor, int source, int, const CallOptions& call) {
  return done(OpType::RECV, call, {tensor}, source);
}
Backend::WorkPtr FakeBackend::recv_any_source(const Tensor& tensor, int, const CallOptions& call) {
  return done(OpType::RECVANYSOURCE, call, {tensor}, rank() == 0 ? size() - 1 : 0);
}

}  // namespace tensorplay::distributed
