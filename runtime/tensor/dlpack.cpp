/// DLPack in and out: tensors of other libraries, without a copy.
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <dlpack/dlpack.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>

namespace tensorplay {
namespace {

using distributed::InvalidArgument;

constexpr std::uint8_t kDLPackBool = 6;  // In the standard since 0.8; Debian's header is older.
constexpr int kDLPackXPU = 14;           // kDLOneAPI, likewise.

struct ElementType {
  DType dtype;
  std::uint8_t code;
  std::uint8_t bits;
};

constexpr std::array<ElementType, 10> kElementTypes = {{
    {DType::kUInt8, kDLUInt, 8},
    {DType::kInt8, kDLInt, 8},
    {DType::kInt16, kDLInt, 16},
    {DType::kInt32, kDLInt, 32},
    {DType::kInt64, kDLInt, 64},
    {DType::kFloat16, kDLFloat, 16},
    {DType::kBFloat16, kDLBfloat, 16},
    {DType::kFloat32, kDLFloat, 32},
    {DType::kFloat64, kDLFloat, 64},
    {DType::kBool, kDLPackBool, 8},
}};

DType dtype_from(const DLDataType& type) {
  for (const auto& known : kElementTypes) {
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return known.dtype;
  }
  throw InvalidArgument("DLPack element type code " + std::to_string(type.code) + ", " + std::to_string(type.bits) +
                        " bits, " + std::to_string(type.lanes) + " lanes: no dtype of ours");
}

Device device_from(const DLDevice& device) {
  const int type = device.device_type;  // An int: newer peers send values that this header does not list.
  if (type == kDLCPU || type == kDLCUDAHost) return {DeviceType::kCPU};
  if (type == kDLCUDA || type == kDLCUDAManaged) return {DeviceType::kCUDA, device.device_id};
  if (type == kDLPackXPU) return {DeviceType::kXPU, device.device_id};
  throw InvalidArgument("DLPack device type " + std::to_string(type) + ": neither cpu, cuda nor xpu");
}

DLDevice device_to(const Device& device) {
  int type = kDLCPU;
  if (device.type == DeviceType::kCUDA) type = kDLCUDA;
  if (device.type == DeviceType::kXPU) type = kDLPackXPU;
  return {static_cast<DLDeviceType>(type), device.index < 0 ? 0 : device.index};
}

/// A tensor on loan to a DLPack consumer, with the arrays that the DLTensor points into.
struct Loan {
  Tensor tensor;
  Shape shape;
  Shape strides;
  DLManagedTensor managed;
};

}  // namespace

Tensor Tensor::from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) throw InvalidArgument("from_dlpack of a null pointer");
  const DLTensor& source = managed->dl_tensor;
  Shape shape(source.shape, source.shape + source.ndim);
  Shape strides;
  if (source.strides != nullptr) strides.assign(source.strides, source.strides + source.ndim);
  void* data = source.data == nullptr ? nullptr : static_cast<std::byte*>(source.data) + source.byte_offset;
  Tensor result =
      from_pointer(data, dtype_from(source.dtype), std::move(shape), std::move(strides), device_from(source.device));
  result.keeper_ = std::shared_ptr<void>(managed, [](void* owned) {
    auto* tensor = static_cast<DLManagedTensor*>(owned);
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  });
  return result;
}

DLManagedTensor* Tensor::to_dlpack() const {
  if (!defined()) throw InvalidArgument("to_dlpack of a tensor that is not defined");
  auto loan = std::make_unique<Loan>();
  loan->tensor = *this;
  loan->shape = shape_;
  loan->strides = strides_;
  DLTensor& view = loan->managed.dl_tensor;
  view.data = data_;
  view.device = device_to(device_);
  view.ndim = static_cast<int>(shape_.size());
  for (const auto& known : kElementTypes) {
    if (known.dtype == dtype_) view.dtype = {known.code, known.bits, 1};
  }
  view.shape = loan->shape.data();
  view.strides = loan->strides.data();
  view.byte_offset = 0;
  loan->managed.manager_ctx = loan.get();
  loan->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Loan*>(self->manager_ctx); };
  return &loan.release()->managed;
}

}  // namespace tensorplay
