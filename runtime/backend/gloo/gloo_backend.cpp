#include "runtime/backend/gloo/gloo_backend.hpp"

#include "runtime/backend/gloo/monitored_barrier.hpp"
#include "runtime/group/packed.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

/// How long a group that is destroyed lets its queued operations go on.
constexpr std::chrono::milliseconds kDrainLimit = std::chrono::seconds(5);

/// A small number, never 0, for the name of a collective.
std::uint64_t kind_of(OpType type) {
  return 1 + static_cast<std::uint64_t>(type);
}

Block block_of(const Packed& packed) {
  return {packed.data(), packed.bytes()};
}

Elements elements_of(const Packed& packed) {
  return {packed.data(), packed.count(), packed.dtype()};
}

/// Several tensors packed, as blocks of memory.
struct PackedList {
  explicit PackedList(const std::vector<Tensor>& tensors) : packed(tensors.begin(), tensors.end()) {
    for (const auto& tensor : packed) blocks.push_back(block_of(tensor));
  }
  void unpack() {
    for (auto& tensor : packed) tensor.unpack();
  }

  std::vector<Packed> packed;
  std::vector<Block> blocks;
};

/// `size` pieces of a whole, one after the other.
std::vector<Block> pieces(void* whole, std::size_t bytes, int size) {
  std::vector<Block> result;
  for (int rank = 0; rank < size; ++rank) {
    result.push_back({static_cast<std::byte*>(whole) + static_cast<std::size_t>(rank) * bytes, bytes});
  }
  return result;
}

}  // namespace

GlooBackend::GlooBackend(BackendOptions options)
    : Backend(std::move(options)),
      mesh_(Backend::options(), Deadline::after(Backend::options().init_limit)),
      transfers_(mesh_) {}

GlooBackend::~GlooBackend() {
  shutdown();
}

Backend::WorkPtr GlooBackend::submit(OpType type, const CallOptions& call, Run run) {
  const auto limit = limit_of(call);
  const std::string operation(to_string(type));
  return executor_.submit(operation, call.async_op,
                          [this, type, operation, limit, run = std::move(run)](std::uint64_t sequence) {
                            Operation context{mesh_,
                                              operation + " #" + std::to_string(sequence),
                                              slot::of_sequence(sequence),
                                              limit,
                                              Deadline::after(limit),
                                              kind_of(type)};
                            return run(context);
                          });
}

Backend::WorkPtr GlooBackend::broadcast(const Tensor& tensor, int root, const CallOptions& call) {
  return submit(OpType::BROADCAST, call, [tensor, root](Operation& operation) {
    Packed packed(tensor);
    run_broadcast(operation, packed.data(), packed.bytes(), root);
    packed.unpack();
    return Tensors{tensor};
  });
}

Backend::WorkPtr GlooBackend::all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call) {
  return submit(OpType::ALLREDUCE, call, [this, tensor, op](Operation& operation) {
    Packed packed(tensor);
    run_all_reduce(operation, elements_of(packed), op, scratch_);
    packed.unpack();
    return Tensors{tensor};
  });
}

Backend::WorkPtr GlooBackend::reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call) {
  return submit(OpType::REDUCE, call, [this, tensor, root, op](Operation& operation) {
    Packed packed(tensor);
    run_reduce(operation, elements_of(packed), root, op, scratch_);
    if (rank() == root) packed.unpack();
    return Tensors{tensor};
  });
}

Backend::WorkPtr GlooBackend::all_reduce_coalesced(const Tensors& tensors, const ReduceOp& op,
                                                   const CallOptions& call) {
  return submit(OpType::ALLREDUCE_COALESCED, call, [this, tensors, op](Operation& operation) {
    for (const auto& tensor : tensors) {
      Packed packed(tensor);
      run_all_reduce(operation, elements_of(packed), op, scratch_);
      packed.unpack();
    }
    return tensors;
  });
}

Backend::WorkPtr GlooBackend::all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call) {
  return submit(OpType::ALLGATHER, call, [outputs, input](Operation& operation) {
    const Packed packed(input);
    PackedList arriving(outputs);
    run_all_gather(operation, arriving.blocks, block_of(packed));
    arriving.unpack();
    return outputs;
  });
}

Backend::WorkPtr GlooBackend::all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call) {
  return submit(OpType::ALLGATHER_SINGLE, call, [this, output, input](Operation& operation) {
    const Packed packed(input);
    Packed arriving(output);
    run_all_gather(operation, pieces(arriving.data(), packed.bytes(), size()), block_of(packed));
    arriving.unpack();
    return Tensors{output};
  });
}

Backend::WorkPtr GlooBackend::gather(const Tensors& outputs, const Tensor& input, int root, const CallOptions& call) {
  return submit(OpType::GATHER, call, [outputs, input, root](Operation& operation) {
    const Packed packed(input);
    PackedList arriving(outputs);
    run_gather(operation, arriving.blocks, block_of(packed), root);
    arriving.unpack();
    return outputs;
  });
}

Backend::WorkPtr GlooBackend::scatter(const Tensor& output, const Tensors& inputs, int root, const CallOptions& call) {
  return submit(OpType::SCATTER, call, [output, inputs, root](Operation& operation) {
    const PackedList leaving(inputs);
    Packed arriving(output);
    run_scatter(operation, block_of(arriving), leaving.blocks, root);
    arriving.unpack();
    return Tensors{output};
  });
}

Backend::WorkPtr GlooBackend::reduce_scatter(const Tensor& output, const Tensors& inputs, const ReduceOp& op,
                                             const CallOptions& call) {
  return submit(OpType::REDUCE_SCATTER, call, [this, output, inputs, op](Operation& operation) {
    Packed result(output);
    const PackedList leaving(inputs);
    std::vector<Elements> parts;
    for (const auto& input : leaving.packed) parts.push_back(elements_of(input));
    run_reduce_scatter(operation, elements_of(result), parts, op, scratch_);
    result.unpack();
    return Tensors{output};
  });
}

Backend::WorkPtr GlooBackend::reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                                    const CallOptions& call) {
  return submit(OpType::REDUCE_SCATTER_SINGLE, call, [this, output, input, op](Operation& operation) {
    Packed result(output);
    const Packed packed(input);
    std::vector<Elements> parts;
    for (const auto& piece : pieces(packed.data(), result.bytes(), size())) {
      parts.push_back({piece.data, result.count(), result.dtype()});
    }
    run_reduce_scatter(operation, elements_of(result), parts, op, scratch_);
    result.unpack();
    return Tensors{output};
  });
}

Backend::WorkPtr GlooBackend::all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call) {
  return submit(OpType::ALLTOALL, call, [outputs, inputs](Operation& operation) {
    const PackedList leaving(inputs);
    PackedList arriving(outputs);
    run_all_to_all(operation, arriving.blocks, leaving.blocks);
    arriving.unpack();
    return outputs;
  });
}

Backend::WorkPtr GlooBackend::barrier(const CallOptions& call) {
  return submit(OpType::BARRIER, call, [](Operation& operation) {
    run_barrier(operation);
    return Tensors{};
  });
}

void GlooBackend::monitored_barrier(std::chrono::milliseconds timeout, bool wait_all_ranks) {
  submit(OpType::MONITORED_BARRIER, {timeout, false}, [timeout, wait_all_ranks](Operation& operation) {
    MonitoredBarrier(operation, timeout).run(wait_all_ranks);
    return Tensors{};
  });
}

Backend::WorkPtr GlooBackend::send(const Tensor& tensor, int destination, int tag, const CallOptions& call) {
  return transfers_.start(Transfers::Kind::kSend, tensor, destination, tag, limit_of(call), call.async_op);
}

Backend::WorkPtr GlooBackend::recv(const Tensor& tensor, int source, int tag, const CallOptions& call) {
  return transfers_.start(Transfers::Kind::kReceive, tensor, source, tag, limit_of(call), call.async_op);
}

Backend::WorkPtr GlooBackend::recv_any_source(const Tensor& tensor, int tag, const CallOptions& call) {
  return transfers_.start(Transfers::Kind::kReceive, tensor, Mesh::kAnyPeer, tag, limit_of(call), call.async_op);
}

void GlooBackend::abort(const std::string& why) {
  mesh_.abort(why);
}

void GlooBackend::shutdown() {
  const auto deadline = Deadline::after(kDrainLimit);
  if (mesh_.reason_unusable().empty()) {
    executor_.drain(kDrainLimit);
    transfers_.drain(deadline);
  }
  mesh_.close();
  executor_.stop(std::make_exception_ptr(DistBackendError("the group was destroyed before the operation ran")));
  transfers_.stop();
}

}  // namespace tensorplay::distributed
