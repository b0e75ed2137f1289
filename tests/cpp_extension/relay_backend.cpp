#include "relay_backend.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include <tensorplay/distributed/errors.hpp>

namespace relay {

RelayBackend::RelayBackend(dist::BackendOptions options) : Backend(std::move(options)) {}

dist::BackendTraits RelayBackend::traits() {
  using dist::OpType;
  dist::BackendTraits traits;
  traits.devices = {tensorplay::DeviceType::kCPU};
  traits.operations = {OpType::BROADCAST,
                       OpType::ALLREDUCE,
                       OpType::ALLREDUCE_COALESCED,
                       OpType::ALLGATHER,
                       OpType::ALLGATHER_SINGLE,
                       OpType::GATHER,
                       OpType::SCATTER,
                       OpType::ALLTOALL,
                       OpType::ALLTOALL_SINGLE,
                       OpType::BARRIER,
                       OpType::SEND,
                       OpType::RECV};
  return traits;
}

dist::Backend::WorkPtr RelayBackend::carry_out(const char* operation, const dist::CallOptions& call,
                                               const std::function<Tensors(const std::string&, Limit)>& run) {
  const std::lock_guard lock(mutex_);
  const auto number = sequence_++;
  auto work = std::make_shared<dist::Work>(operation, number);
  try {
    if (!aborted_.empty()) throw dist::DistBackendError(std::string(operation) + ": " + aborted_);
    work->finish(run(std::to_string(number), limit_of(call)));
  } catch (...) {
    if (!call.async_op) throw;
    work->fail(std::current_exception());
  }
  return work;
}

void RelayBackend::put(const std::string& key, const Tensor& tensor) {
  const Tensor flat = tensor.contiguous();
  options().store->set(key + "/" + std::to_string(rank()),
                       std::string(static_cast<const char*>(flat.data()), flat.nbytes()));
}

void RelayBackend::take(const std::string& key, int from, int readers, const Tensor& into, Limit limit) {
  const std::string place = key + "/" + std::to_string(from);
  dist::Store& store = *options().store;
  try {
    store.wait({place}, limit);
  } catch (const dist::StoreTimeoutError&) {
    throw dist::DistBackendError("relay: nothing came from rank " + std::to_string(from));
  }
  const std::string bytes = store.get(place);
  Tensor arrived = tensorplay::empty(into.shape(), into.dtype());
  if (bytes.size() != arrived.nbytes()) {
    throw dist::DistBackendError("relay: rank " + std::to_string(from) + " sent " + std::to_string(bytes.size()) +
                                 " bytes, not " + std::to_string(arrived.nbytes()));
  }
  if (!bytes.empty()) std::memcpy(arrived.data(), bytes.data(), bytes.size());
  Tensor(into).copy_(arrived);
  if (store.add(place + "/read", 1) == readers) {
    store.delete_key(place);
    store.delete_key(place + "/read");
  }
}

dist::Backend::WorkPtr RelayBackend::broadcast(const Tensor& tensor, int root, const dist::CallOptions& call) {
  return carry_out("broadcast", call, [&](const std::string& key, Limit limit) {
    if (rank() == root) put(key, tensor);
    if (rank() != root) take(key, root, size() - 1, tensor, limit);
    return Tensors{tensor};
  });
}

dist::Backend::WorkPtr RelayBackend::all_reduce(const Tensor& tensor, const dist::ReduceOp& op,
                                                const dist::CallOptions& call) {
  const bool is_average = op.kind() == dist::ReduceOp::AVG && tensorplay::is_floating_point(tensor.dtype());
  if (op.kind() != dist::ReduceOp::SUM && !is_average) {
    throw dist::NotImplementedError("backend relay does not support all_reduce with " +
                                    std::string(dist::to_string(op)) + " of " +
                                    std::string(tensorplay::to_string(tensor.dtype())));
  }
  return carry_out("all_reduce", call, [&](const std::string& key, Limit limit) {
    put(key, tensor);
    Tensor sum = tensorplay::zeros(tensor.shape(), tensor.dtype());
    Tensor next = tensorplay::empty(tensor.shape(), tensor.dtype());
    for (int r = 0; r < size(); ++r) {  // In rank order: the same bits everywhere.
      take(key, r, size(), next, limit);
      sum.add_(next);
    }
    if (is_average) sum.mul_(1.0 / size());
    Tensor(tensor).copy_(sum);
    return Tensors{tensor};
  });
}

dist::Backend::WorkPtr RelayBackend::all_gather(const Tensors& outputs, const Tensor& input,
                                                const dist::CallOptions& call) {
  return carry_out("all_gather", call, [&](const std::string& key, Limit limit) {
    put(key, input);
    for (int r = 0; r < size(); ++r) take(key, r, size(), outputs[static_cast<std::size_t>(r)], limit);
    return outputs;
  });
}

dist::Backend::WorkPtr RelayBackend::gather(const Tensors& outputs, const Tensor& input, int root,
                                            const dist::CallOptions& call) {
  return carry_out("gather", call, [&](const std::string& key, Limit limit) {
    put(key, input);
    for (int r = 0; rank() == root && r < size(); ++r) take(key, r, 1, outputs[static_cast<std::size_t>(r)], limit);
    return outputs;
  });
}

dist::Backend::WorkPtr RelayBackend::scatter(const Tensor& output, const Tensors& inputs, int root,
                                             const dist::CallOptions& call) {
  return carry_out("scatter", call, [&](const std::string& key, Limit limit) {
    for (int r = 0; rank() == root && r < size(); ++r) {
      put(key + "/" + std::to_string(r), inputs[static_cast<std::size_t>(r)]);
    }
    take(key + "/" + std::to_string(rank()), root, 1, output, limit);
    return Tensors{output};
  });
}

dist::Backend::WorkPtr RelayBackend::all_to_all(const Tensors& outputs, const Tensors& inputs,
                                                const dist::CallOptions& call) {
  return carry_out("all_to_all", call, [&](const std::string& key, Limit limit) {
    for (int r = 0; r < size(); ++r) put(key + "/" + std::to_string(r), inputs[static_cast<std::size_t>(r)]);
    for (int r = 0; r < size(); ++r) {
      take(key + "/" + std::to_string(rank()), r, 1, outputs[static_cast<std::size_t>(r)], limit);
    }
    return outputs;
  });
}

dist::Backend::WorkPtr RelayBackend::barrier(const dist::CallOptions& call) {
  return carry_out("barrier", call, [&](const std::string& key, Limit limit) {
    options().store->barrier(key, size(), limit);
    return Tensors{};
  });
}

dist::Backend::WorkPtr RelayBackend::send(const Tensor& tensor, int destination, int tag,
                                          const dist::CallOptions& call) {
  // Outside the order of the collectives, by queues: the messages of one pair and tag stay in order.
  auto work = std::make_shared<dist::Work>("send", 0);
  const Tensor flat = tensor.contiguous();
  const std::string key = std::to_string(rank()) + ">" + std::to_string(destination) + "#" + std::to_string(tag);
  options().store->queue_push(key, std::string(static_cast<const char*>(flat.data()), flat.nbytes()));
  work->finish({tensor});
  static_cast<void>(call);
  return work;
}

dist::Backend::WorkPtr RelayBackend::recv(const Tensor& tensor, int source, int tag, const dist::CallOptions& call) {
  auto work = std::make_shared<dist::Work>("recv", 0);
  work->set_source_rank(source);
  try {
    const auto store = options().store->clone();
    store->set_timeout(limit_of(call));
    const std::string bytes =
        store->queue_pop(std::to_string(source) + ">" + std::to_string(rank()) + "#" + std::to_string(tag));
    Tensor arrived = tensorplay::empty(tensor.shape(), tensor.dtype());
    if (bytes.size() != arrived.nbytes()) throw dist::DistBackendError("relay: a message of another size arrived");
    if (!bytes.empty()) std::memcpy(arrived.data(), bytes.data(), bytes.size());
    Tensor(tensor).copy_(arrived);
    work->finish({tensor});
  } catch (const dist::DistError& error) {
    const dist::DistBackendError failure(std::string("recv: ") + error.what());
    if (!call.async_op) throw failure;
    work->fail(std::make_exception_ptr(failure));
  }
  return work;
}

void RelayBackend::abort(const std::string& why) {
  const std::lock_guard lock(mutex_);
  aborted_ = why;
}

}  // namespace relay
