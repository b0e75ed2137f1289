#include "tensorplay/distributed/backend.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

[[noreturn]] void refuse(const Backend& backend, const char* operation) {
  throw NotImplementedError("backend " + backend.name() + " does not support " + operation);
}

}  // namespace

Backend::Backend(BackendOptions options) : options_(std::move(options)) {}
Backend::~Backend() = default;

std::chrono::milliseconds Backend::limit_of(const CallOptions& call) const noexcept {
  return call.timeout.count() > 0 ? call.timeout : options_.timeout;
}

Backend::WorkPtr Backend::broadcast(const Tensor&, int, const CallOptions&) {
  refuse(*this, "broadcast");
}
Backend::WorkPtr Backend::all_reduce(const Tensor&, const ReduceOp&, const CallOptions&) {
  refuse(*this, "all_reduce");
}
Backend::WorkPtr Backend::reduce(const Tensor&, int, const ReduceOp&, const CallOptions&) {
  refuse(*this, "reduce");
}
Backend::WorkPtr Backend::all_gather(const std::vector<Tensor>&, const Tensor&, const CallOptions&) {
  refuse(*this, "all_gather");
}
Backend::WorkPtr Backend::all_gather_single(const Tensor&, const Tensor&, const CallOptions&) {
  refuse(*this, "all_gather_single");
}
Backend::WorkPtr Backend::reduce_scatter(const Tensor&, const std::vector<Tensor>&, const ReduceOp&,
                                         const CallOptions&) {
  refuse(*this, "reduce_scatter");
}
Backend::WorkPtr Backend::reduce_scatter_single(const Tensor&, const Tensor&, const ReduceOp&, const CallOptions&) {
  refuse(*this, "reduce_scatter_single");
}
Backend::WorkPtr Backend::barrier(const CallOptions&) {
  refuse(*this, "barrier");
}
Backend::WorkPtr Backend::send(const Tensor&, int, int, const CallOptions&) {
  refuse(*this, "send");
}
Backend::WorkPtr Backend::recv(const Tensor&, int, int, const CallOptions&) {
  refuse(*this, "recv");
}

void Backend::abort(const std::string&) {}
void Backend::shutdown() {}

}  // namespace tensorplay::distributed
