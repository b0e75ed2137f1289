#include "runtime/backend/mpi/mpi_reduction.hpp"

#include <cstdint>

namespace tensorplay::distributed::mpi {
namespace {

DType wire_of(const ReduceOp& op, DType dtype) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return DType::kFloat32;
  if (dtype == DType::kBool) return DType::kUInt8;
  if (op.kind() == ReduceOp::AVG && !is_floating_point(dtype)) return DType::kInt64;
  return dtype;
}

MPI_Op op_of(const ReduceOp& op, bool is_bool) {
  switch (op.kind()) {
    case ReduceOp::PRODUCT:
      return is_bool ? MPI_BAND : MPI_PROD;
    case ReduceOp::MIN:
      return MPI_MIN;
    case ReduceOp::MAX:
      return MPI_MAX;
    case ReduceOp::BAND:
      return MPI_BAND;
    case ReduceOp::BOR:
      return MPI_BOR;
    case ReduceOp::BXOR:
      return MPI_BXOR;
    default:
      return is_bool ? MPI_BOR : MPI_SUM;
  }
}

}  // namespace

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return MPI_INT8_T;
    case DType::kInt16:
      return MPI_INT16_T;
    case DType::kInt32:
      return MPI_INT32_T;
    case DType::kInt64:
      return MPI_INT64_T;
    case DType::kFloat32:
      return MPI_FLOAT;
    case DType::kFloat64:
      return MPI_DOUBLE;
    case DType::kFloat16:
    case DType::kBFloat16:
      return MPI_UINT16_T;  // Moved only.
    case DType::kUInt8:
    case DType::kBool:
      break;
  }
  return MPI_UINT8_T;
}

Reduction::Reduction(const ReduceOp& wanted, DType dtype)
    : wire(wire_of(wanted, dtype)),
      op(op_of(wanted, dtype == DType::kBool)),
      op_(wanted),
      dtype_(dtype),
      is_bool_(dtype == DType::kBool) {}

Tensor Reduction::prepare(const Tensor& tensor) const {
  Tensor travelling = empty(tensor.shape(), wire);
  travelling.copy_(tensor);
  if (op_.kind() == ReduceOp::PREMUL_SUM) travelling.mul_(op_.factor());
  return travelling;
}

void Reduction::finish(Tensor reduced, int size, const Tensor& result) const {
  if (op_.kind() == ReduceOp::AVG) {
    if (wire == DType::kInt64) {
      for (auto& x : reduced.flatten().span<std::int64_t>()) x /= size;
    } else if (wire == DType::kFloat32) {
      for (auto& x : reduced.flatten().span<float>()) x /= static_cast<float>(size);
    } else {
      for (auto& x : reduced.flatten().span<double>()) x /= size;
    }
  }
  if (reduced.data() != result.data()) Tensor(result).copy_(reduced.reshape(result.shape()));
}

}  // namespace tensorplay::distributed::mpi
