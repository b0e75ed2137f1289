#include "runtime/backend/mpi/mpi_backend.hpp"

#include "runtime/backend/mpi/mpi_reduction.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tensorplay::distributed {
namespace {

constexpr std::chrono::milliseconds kDrainLimit = std::chrono::seconds(5);
constexpr std::int64_t kPiece = std::int64_t{1} << 30;  // Elements; MPI counts in int.

/// Calls `start(pointer, count)` for pieces that MPI can count.
template <typename Start>
void for_each_piece(const Tensor& flat, Start start) {
  auto* const base = static_cast<std::byte*>(flat.data());
  std::int64_t offset = 0;
  do {  // Once for an empty tensor too: all ranks start as many.
    const auto count = std::min(kPiece, flat.numel() - offset);
    start(base + static_cast<std::size_t>(offset) * element_size(flat.dtype()), static_cast<int>(count));
    offset += count;
  } while (offset < flat.numel());
}

/// Counts and places of several tensors, one after the other in one.
struct Counts {
  explicit Counts(const std::vector<Tensor>& tensors) {
    for (const auto& tensor : tensors) {
      if (total + tensor.numel() > std::numeric_limits<int>::max()) {
        throw InvalidArgument("backend mpi: more than 2^31 - 1 elements in one call");
      }
      counts.push_back(static_cast<int>(tensor.numel()));
      places.push_back(static_cast<int>(total));
      total += tensor.numel();
    }
  }
  std::vector<int> counts;
  std::vector<int> places;
  std::int64_t total = 0;
};

Tensor packed(const std::vector<Tensor>& tensors, const Counts& counts, DType dtype) {
  Tensor whole = empty({counts.total}, dtype);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    whole.slice(0, counts.places[i], counts.places[i] + counts.counts[i]).copy_(tensors[i].contiguous().flatten());
  }
  return whole;
}

void unpack(const Tensor& whole, const Counts& counts, const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor(tensors[i])
        .copy_(whole.slice(0, counts.places[i], counts.places[i] + counts.counts[i]).reshape(tensors[i].shape()));
  }
}

/// The tensor itself where it is contiguous, else room for its elements.
Tensor room_for(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : empty(tensor.shape(), tensor.dtype());
}

void bring_back(const Tensor& from, const Tensor& to) {
  if (from.data() != to.data()) Tensor(to).copy_(from);
}

}  // namespace

MpiBackend::MpiBackend(BackendOptions options)
    : Backend(std::move(options)), requests_([this] { return reason_unusable(); }) {
  mpi::ensure_session();
  communicator_ = mpi::make_communicator(Backend::options().global_ranks, Backend::options().group_name);
}

MpiBackend::~MpiBackend() {
  shutdown();
}

std::string MpiBackend::reason_unusable() const {
  const std::lock_guard lock(mutex_);
  return unusable_;
}

void MpiBackend::make_unusable(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (unusable_.empty()) unusable_ = why;
}

Backend::WorkPtr MpiBackend::submit(const char* operation, const CallOptions& call,
                                    std::function<Tensors(Running&)> run) {
  const auto limit = limit_of(call);
  return executor_.submit(
      operation, call.async_op, [this, operation, limit, run = std::move(run)](std::uint64_t sequence) {
        Running running{std::string(operation) + " #" + std::to_string(sequence), limit, Deadline::after(limit), {}};
        if (const auto why = reason_unusable(); !why.empty()) {
          throw DistBackendError(running.what + ": the group is unusable: " + why);
        }
        return run(running);
      });
}

void MpiBackend::carry_out(Running& running, const Start& start) {
  std::vector<MPI_Request> requests;
  try {
    {
      const std::lock_guard lock(mpi::lock_of_mpi());
      start(requests);
    }
    mpi::wait_for(requests, running.what, running.limit, running.deadline, [this] { return reason_unusable(); });
  } catch (const DistBackendError& error) {
    mpi::keep_forever(std::make_shared<std::vector<Tensor>>(running.memory));
    has_given_up_ = true;
    make_unusable(error.what());
    throw;
  }
}

Backend::WorkPtr MpiBackend::broadcast(const Tensor& tensor, int root, const CallOptions& call) {
  return submit("broadcast", call, [this, tensor, root](Running& running) {
    const Tensor flat = tensor.contiguous();
    running.memory = {flat};
    carry_out(running, [&](auto& requests) {
      for_each_piece(flat, [&](void* data, int count) {
        requests.emplace_back();
        mpi::check(MPI_Ibcast(data, count, mpi::type_of(flat.dtype()), root, communicator_, &requests.back()),
                   running.what);
      });
    });
    bring_back(flat, tensor);
    return Tensors{tensor};
  });
}

Backend::WorkPtr MpiBackend::all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call) {
  return submit("all_reduce", call, [this, tensor, op](Running& running) {
    const mpi::Reduction reduction(op, tensor.dtype());
    const Tensor travelling = reduction.is_native() && tensor.is_contiguous() ? tensor : reduction.prepare(tensor);
    running.memory = {travelling};
    carry_out(running, [&](auto& requests) {
      for_each_piece(travelling, [&](void* data, int count) {
        requests.emplace_back();
        mpi::check(MPI_Iallreduce(MPI_IN_PLACE, data, count, mpi::type_of(reduction.wire), reduction.op, communicator_,
                                  &requests.back()),
                   running.what);
      });
    });
    reduction.finish(travelling, size(), tensor);
    return Tensors{tensor};
  });
}

Backend::WorkPtr MpiBackend::reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call) {
  return submit("reduce", call, [this, tensor, root, op](Running& running) {
    const mpi::Reduction reduction(op, tensor.dtype());
    const Tensor travelling = reduction.prepare(tensor);
    running.memory = {travelling};
    carry_out(running, [&](auto& requests) {
      for_each_piece(travelling, [&](void* data, int count) {
        requests.emplace_back();
        const void* const sent = rank() == root ? MPI_IN_PLACE : data;
        mpi::check(MPI_Ireduce(sent, data, count, mpi::type_of(reduction.wire), reduction.op, root, communicator_,
                               &requests.back()),
                   running.what);
      });
    });
    if (rank() == root) reduction.finish(travelling, size(), tensor);
    return Tensors{tensor};
  });
}

Backend::WorkPtr MpiBackend::all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call) {
  return submit("all_gather", call, [this, outputs, input](Running& running) {
    const Counts counts(outputs);
    const Tensor sent = input.contiguous();
    const Tensor all = empty({counts.total}, input.dtype());
    running.memory = {sent, all};
    carry_out(running, [&](auto& requests) {
      requests.emplace_back();
      const auto type = mpi::type_of(input.dtype());
      mpi::check(MPI_Iallgatherv(sent.data(), static_cast<int>(sent.numel()), type, all.data(), counts.counts.data(),
                                 counts.places.data(), type, communicator_, &requests.back()),
                 running.what);
    });
    unpack(all, counts, outputs);
    return outputs;
  });
}

Backend::WorkPtr MpiBackend::all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call) {
  return submit("all_gather_single", call, [this, output, input](Running& running) {
    const Counts counts(Tensors{output});  // Refuses what is too large.
    const Tensor sent = input.contiguous();
    const Tensor all = room_for(output);
    running.memory = {sent, all};
    carry_out(running, [&](auto& requests) {
      requests.emplace_back();
      const auto type = mpi::type_of(input.dtype());
      const int count = static_cast<int>(sent.numel());
      mpi::check(MPI_Iallgather(sent.data(), count, type, all.data(), count, type, communicator_, &requests.back()),
                 running.what);
    });
    bring_back(all, output);
    return Tensors{output};
  });
}

Backend::WorkPtr MpiBackend::gather(const Tensors& outputs, const Tensor& input, int root, const CallOptions& call) {
  return submit("gather", call, [this, outputs, input, root](Running& running) {
    const Counts counts(outputs);
    const Tensor sent = input.contiguous();
    const Tensor all = empty({counts.total}, input.dtype());
    running.memory = {sent, all};
    carry_out(running, [&](auto& requests) {
      requests.emplace_back();
      const auto type = mpi::type_of(input.dtype());
      mpi::check(MPI_Igatherv(sent.data(), static_cast<int>(sent.numel()), type, all.data(), counts.counts.data(),
                              counts.places.data(), type, root, communicator_, &requests.back()),
                 running.what);
    });
    unpack(all, counts, outputs);
    return outputs;
  });
}

Backend::WorkPtr MpiBackend::scatter(const Tensor& output, const Tensors& inputs, int root, const CallOptions& call) {
  return submit("scatter", call, [this, output, inputs, root](Running& running) {
    const Counts counts(inputs);
    const Tensor all = packed(inputs, counts, output.dtype());
    const Tensor got = room_for(output);
    running.memory = {all, got};
    carry_out(running, [&](auto& requests) {
      requests.emplace_back();
      const auto type = mpi::type_of(output.dtype());
      mpi::check(MPI_Iscatterv(all.data(), counts.counts.data(), counts.places.data(), type, got.data(),
                               static_cast<int>(got.numel()), type, root, communicator_, &requests.back()),
                 running.what);
    });
    bring_back(got, output);
    return Tensors{output};
  });
}

Backend::WorkPtr MpiBackend::reduce_scatter(const Tensor& output, const Tensors& inputs, const ReduceOp& op,
                                            const CallOptions& call) {
  return submit("reduce_scatter", call, [this, output, inputs, op](Running& running) {
    const mpi::Reduction reduction(op, output.dtype());
    const Counts counts(inputs);
    const Tensor all = reduction.prepare(packed(inputs, counts, output.dtype()));
    const Tensor got = empty(output.shape(), reduction.wire);
    running.memory = {all, got};
    carry_out(running, [&](auto& requests) {
      requests.emplace_back();
      mpi::check(MPI_Ireduce_scatter(all.data(), got.data(), counts.counts.data(), mpi::type_of(reduction.wire),
                                     reduction.op, communicator_, &requests.back()),
                 running.what);
    });
    reduction.finish(got, size(), output);
    return Tensors{output};
  });
}

Backend::WorkPtr MpiBackend::all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call) {
  return submit("all_to_all", call, [this, outputs, inputs](Running& running) {
    const Counts leaving(inputs);
    const Counts arriving(outputs);
    const auto dtype = inputs.front().dtype();
    const Tensor sent = packed(inputs, leaving, dtype);
    const Tensor got = empty({arriving.total}, dtype);
    running.memory = {sent, got};
    carry_out(running, [&](auto& requests) {
      requests.emplace_back();
      const auto type = mpi::type_of(dtype);
      mpi::check(MPI_Ialltoallv(sent.data(), leaving.counts.data(), leaving.places.data(), type, got.data(),
                                arriving.counts.data(), arriving.places.data(), type, communicator_, &requests.back()),
                 running.what);
    });
    unpack(got, arriving, outputs);
    return outputs;
  });
}

Backend::WorkPtr MpiBackend::barrier(const CallOptions& call) {
  return submit("barrier", call, [this](Running& running) {
    carry_out(running, [&](auto& requests) {
      requests.emplace_back();
      mpi::check(MPI_Ibarrier(communicator_, &requests.back()), running.what);
    });
    return Tensors{};
  });
}

Backend::WorkPtr MpiBackend::transfer(bool is_send, const Tensor& tensor, int peer, int tag, const CallOptions& call) {
  const auto number = transfers_++;
  const std::string name = is_send ? "send" : "recv";
  const auto limit = limit_of(call);
  auto work = std::make_shared<Work>(name, number);
  const Tensor flat = is_send ? tensor.contiguous() : room_for(tensor);
  mpi::Requests::Entry entry{{},
                             name + " #" + std::to_string(number) + " with tag " + std::to_string(tag),
                             limit,
                             Deadline::after(limit),
                             {},
                             {},
                             std::make_shared<Tensor>(flat)};
  if (const auto why = reason_unusable(); !why.empty()) {
    throw DistBackendError(entry.what + ": the group is unusable: " + why);
  }
  if (peer == MPI_ANY_SOURCE && flat.numel() > kPiece) {
    throw InvalidArgument("backend mpi: recv from any source of more than 2^30 elements");
  }
  {
    const std::lock_guard lock(mpi::lock_of_mpi());
    const auto type = mpi::type_of(flat.dtype());
    for_each_piece(flat, [&](void* data, int count) {
      entry.requests.emplace_back();
      mpi::check(is_send ? MPI_Isend(data, count, type, peer, tag, communicator_, &entry.requests.back())
                         : MPI_Irecv(data, count, type, peer, tag, communicator_, &entry.requests.back()),
                 entry.what);
    });
  }
  entry.complete = [work, tensor, flat, is_send, what = entry.what](const MPI_Status& status) {
    if (!is_send) {
      int got = 0;
      MPI_Get_count(&status, mpi::type_of(flat.dtype()), &got);
      if (const auto last = flat.numel() % kPiece; got != last && !(last == 0 && got == kPiece)) {
        throw DistBackendError(what + ": " + std::to_string(got) + " elements came, not " + std::to_string(last));
      }
      bring_back(flat, tensor);
      work->set_source_rank(status.MPI_SOURCE);
    }
    work->finish({tensor});
  };
  const auto give_up = [this, is_send](std::vector<MPI_Request>& requests) {
    if (is_send || !mpi::cancel(requests)) has_given_up_ = true;
    make_unusable("a transfer failed");
  };
  entry.fail = [work, give_up](const std::exception_ptr& error, std::vector<MPI_Request>& requests) {
    give_up(requests);
    work->fail(error);
  };
  if (call.async_op) {
    requests_.add(std::move(entry));
    return work;
  }
  try {
    entry.complete(
        mpi::wait_for(entry.requests, entry.what, limit, entry.deadline, [this] { return reason_unusable(); }));
  } catch (const DistBackendError&) {
    mpi::keep_forever(entry.memory);
    give_up(entry.requests);
    throw;
  }
  return work;
}

Backend::WorkPtr MpiBackend::send(const Tensor& tensor, int destination, int tag, const CallOptions& call) {
  return transfer(true, tensor, destination, tag, call);
}

Backend::WorkPtr MpiBackend::recv(const Tensor& tensor, int source, int tag, const CallOptions& call) {
  return transfer(false, tensor, source, tag, call);
}

Backend::WorkPtr MpiBackend::recv_any_source(const Tensor& tensor, int tag, const CallOptions& call) {
  return transfer(false, tensor, MPI_ANY_SOURCE, tag, call);
}

void MpiBackend::abort(const std::string& why) {
  make_unusable(why);
}

void MpiBackend::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    if (is_shut_down_) return;
    is_shut_down_ = true;
  }
  const bool is_idle = executor_.drain(kDrainLimit) && requests_.drain(kDrainLimit);
  make_unusable("the group was destroyed");
  executor_.stop(std::make_exception_ptr(DistBackendError("the group was destroyed before the operation ran")));
  requests_.stop();
  // A communicator with operations that were given up is left to MPI, which may still be using it.
  if (is_idle && !has_given_up_) mpi::free_communicator(communicator_);
}

}  // namespace tensorplay::distributed
