/// Broadcast, reductions and barrier over a mesh, on contiguous memory.
///
/// Reductions exchange pieces directly between all ranks and fold them in rank order with runtime/tensor/fold.hpp: the
/// result is the same bits in every run, on every rank and for every size, and 16-bit floats are rounded once. Each
/// rank sends and receives 2 (n - 1) / n of the data, as a ring does, in two steps instead of 2 (n - 1).
/// Thread rules: one operation of a mesh at a time. All ranks call the same function with the same sizes.
/// Errors: DistBackendError, as Step has it.
#pragma once

#include "runtime/backend/gloo/exchange.hpp"
#include "runtime/backend/gloo/step.hpp"
#include "tensorplay/distributed/dtype.hpp"
#include "tensorplay/distributed/reduce_op.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace tensorplay::distributed {

/// Memory that operations of a mesh use one after the other; bounded, whatever the size of the tensors.
class Scratch {
 public:
  std::byte* take(std::size_t bytes);

 private:
  std::vector<std::byte> memory_;
};

struct Elements {
  void* data;
  std::size_t count;
  DType dtype;
};

void run_broadcast(Operation& operation, void* data, std::size_t bytes, int root);
void run_all_reduce(Operation& operation, const Elements& elements, const ReduceOp& op, Scratch& scratch);

/// Others' elements than the root's stay as they are.
void run_reduce(Operation& operation, const Elements& elements, int root, const ReduceOp& op, Scratch& scratch);

/// `output` becomes the reduction of every rank's inputs[own rank]; the counts may differ from rank to rank.
void run_reduce_scatter(Operation& operation, const Elements& output, std::span<const Elements> inputs,
                        const ReduceOp& op, Scratch& scratch);
void run_barrier(Operation& operation);

}  // namespace tensorplay::distributed
