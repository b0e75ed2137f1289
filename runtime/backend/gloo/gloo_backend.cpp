#include "runtime/backend/gloo/gloo_backend.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

/// How long a group that is destroyed lets its queued operations go on.
constexpr std::chrono::milliseconds kDrainLimit = std::chrono::seconds(5);

/// Slots: a collective's number and 16 bits for its steps; a set top bit and the tag for point-to-point.
constexpr int kStepBits = 16;
constexpr std::uint64_t kPointToPoint = std::uint64_t{1} << 63;

/// The tensor itself when its elements lie one after the other, else a packed copy that unpack() brings back.
class Packed {
 public:
  explicit Packed(const Tensor& tensor) : tensor_(tensor), flat_(tensor.contiguous()) {}

  void unpack() {
    if (flat_.data() != tensor_.data()) tensor_.copy_(flat_);
  }
  void* data() const { return flat_.data(); }
  Elements elements() const { return {flat_.data(), static_cast<std::size_t>(flat_.numel()), flat_.dtype()}; }
  std::size_t bytes() const { return flat_.nbytes(); }

 private:
  Tensor tensor_;
  Tensor flat_;
};

/// size pieces of `whole`, one after the other.
std::vector<void*> pieces(void* whole, std::size_t bytes, int size) {
  std::vector<void*> result;
  for (int rank = 0; rank < size; ++rank) {
    result.push_back(static_cast<std::byte*>(whole) + static_cast<std::size_t>(rank) * bytes);
  }
  return result;
}

}  // namespace

GlooBackend::GlooBackend(BackendOptions options)
    : Backend(std::move(options)), mesh_(Backend::options(), Deadline::after(Backend::options().init_limit)) {}

GlooBackend::~GlooBackend() {
  shutdown();
}

Backend::WorkPtr GlooBackend::submit(const char* operation, const CallOptions& call, Run run) {
  const auto limit = limit_of(call);
  return executor_.submit(operation, call.async_op,
                          [this, operation, limit, run = std::move(run)](std::uint64_t sequence) {
                            Operation context{mesh_, std::string(operation) + " #" + std::to_string(sequence),
                                              sequence << kStepBits, limit, Deadline::after(limit)};
                            return run(context);
                          });
}

Backend::WorkPtr GlooBackend::broadcast(const Tensor& tensor, int root, const CallOptions& call) {
  return submit("broadcast", call, [tensor, root](Operation& operation) {
    Packed packed(tensor);
    run_broadcast(operation, packed.data(), packed.bytes(), root);
    packed.unpack();
    return std::vector<Tensor>{tensor};
  });
}

Backend::WorkPtr GlooBackend::all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call) {
  return submit("all_reduce", call, [this, tensor, op](Operation& operation) {
    Packed packed(tensor);
    run_all_reduce(operation, packed.elements(), op, scratch_);
    packed.unpack();
    return std::vector<Tensor>{tensor};
  });
}

Backend::WorkPtr GlooBackend::reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call) {
  return submit("reduce", call, [this, tensor, root, op](Operation& operation) {
    Packed packed(tensor);
    run_reduce(operation, packed.elements(), root, op, scratch_);
    if (rank() == root) packed.unpack();
    return std::vector<Tensor>{tensor};
  });
}

Backend::WorkPtr GlooBackend::all_gather(const std::vector<Tensor>& outputs, const Tensor& input,
                                         const CallOptions& call) {
  return submit("all_gather", call, [outputs, input](Operation& operation) {
    const Packed packed(input);
    std::vector<Packed> arriving(outputs.begin(), outputs.end());
    std::vector<void*> places;
    for (const auto& output : arriving) places.push_back(output.data());
    run_all_gather(operation, places, packed.data(), packed.bytes());
    for (auto& output : arriving) output.unpack();
    return outputs;
  });
}

Backend::WorkPtr GlooBackend::all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call) {
  return submit("all_gather_single", call, [this, output, input](Operation& operation) {
    const Packed packed(input);
    Packed arriving(output);
    run_all_gather(operation, pieces(arriving.data(), packed.bytes(), size()), packed.data(), packed.bytes());
    arriving.unpack();
    return std::vector<Tensor>{output};
  });
}

Backend::WorkPtr GlooBackend::reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs,
                                             const ReduceOp& op, const CallOptions& call) {
  return submit("reduce_scatter", call, [this, output, inputs, op](Operation& operation) {
    Packed result(output);
    const std::vector<Packed> packed(inputs.begin(), inputs.end());
    std::vector<const void*> places;
    for (const auto& input : packed) places.push_back(input.data());
    run_reduce_scatter(operation, result.elements(), places, op, scratch_);
    result.unpack();
    return std::vector<Tensor>{output};
  });
}

Backend::WorkPtr GlooBackend::reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                                    const CallOptions& call) {
  return submit("reduce_scatter_single", call, [this, output, input, op](Operation& operation) {
    Packed result(output);
    const Packed packed(input);
    const auto parts = pieces(packed.data(), result.bytes(), size());
    run_reduce_scatter(operation, result.elements(), std::vector<const void*>(parts.begin(), parts.end()), op,
                       scratch_);
    result.unpack();
    return std::vector<Tensor>{output};
  });
}

Backend::WorkPtr GlooBackend::barrier(const CallOptions& call) {
  return submit("barrier", call, [](Operation& operation) {
    run_barrier(operation);
    return std::vector<Tensor>{};
  });
}

Backend::WorkPtr GlooBackend::transfer(const char* operation, int tag, const CallOptions& call,
                                       const std::function<void(Step&)>& post) {
  if (call.async_op)
    throw NotImplementedError(std::string("backend gloo does not support an asynchronous ") + operation);
  const auto limit = limit_of(call);
  const auto number = transfers_++;
  Operation context{mesh_, std::string(operation) + " #" + std::to_string(number) + " with tag " + std::to_string(tag),
                    kPointToPoint | static_cast<std::uint64_t>(tag), limit, Deadline::after(limit)};
  Step step(context);
  post(step);
  step.wait();
  return std::make_shared<Work>(operation, number);
}

Backend::WorkPtr GlooBackend::send(const Tensor& tensor, int destination, int tag, const CallOptions& call) {
  const Packed packed(tensor);
  auto work = transfer("send", tag, call, [&](Step& step) { step.send(destination, packed.data(), packed.bytes()); });
  work->finish({tensor});
  return work;
}

Backend::WorkPtr GlooBackend::recv(const Tensor& tensor, int source, int tag, const CallOptions& call) {
  Packed packed(tensor);
  auto work = transfer("recv", tag, call, [&](Step& step) { step.recv(source, packed.data(), packed.bytes()); });
  packed.unpack();
  work->set_source_rank(source);
  work->finish({tensor});
  return work;
}

void GlooBackend::abort(const std::string& why) {
  mesh_.abort(why);
}

void GlooBackend::shutdown() {
  if (mesh_.reason_unusable().empty()) executor_.drain(kDrainLimit);
  mesh_.close();
  executor_.stop(std::make_exception_ptr(DistBackendError("the group was destroyed before the operation ran")));
}

}  // namespace tensorplay::distributed
