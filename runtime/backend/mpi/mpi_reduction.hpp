/// How a reduction of ours becomes one of MPI's: it has no 16-bit floats, no average and no factor.
#pragma once

#include "tensorplay/distributed/reduce_op.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <mpi.h>

namespace tensorplay::distributed::mpi {

MPI_Datatype type_of(DType dtype);

/// What travels, and how it is made before and used after. 16-bit floats are added up in float, averages of integers in
/// 64 bits; bool is a byte of 0 or 1.
struct Reduction {
  Reduction(const ReduceOp& wanted, DType dtype);

  DType wire;
  MPI_Op op;

  /// Whether the tensor's own memory can travel as it is.
  bool is_native() const noexcept { return wire == dtype_ && op_.kind() != ReduceOp::PREMUL_SUM && !is_bool_; }

  /// A contiguous copy of `tensor` that travels.
  Tensor prepare(const Tensor& tensor) const;

  /// `reduced`, of `size` contributions, into `result`.
  void finish(Tensor reduced, int size, const Tensor& result) const;

 private:
  ReduceOp op_;
  DType dtype_;
  bool is_bool_;
};

}  // namespace tensorplay::distributed::mpi
