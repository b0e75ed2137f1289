#pragma once

#include "tensorplay/distributed/device.hpp"
#include "tensorplay/distributed/dtype.hpp"
#include "tensorplay/distributed/export.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct DLManagedTensor;  // <dlpack/dlpack.h>, for those who exchange tensors through it

namespace tensorplay {

using Shape = std::vector<std::int64_t>;

/// A strided view of memory, and perhaps its owner: what collectives send and fill. Not a math library.
///
/// A Tensor is a handle: copies and views share the elements, as in torch; clone() makes new ones. Memory is either
/// kept alive by every handle to it (factories, DLPack, from_pointer with a deleter) or borrowed from the caller
/// (from_pointer, from_span), who keeps it until the last operation on it has completed.
/// Elements can be touched only where the device is the CPU; tensors of other devices carry their pointer to a backend.
/// Thread rules: a handle is a value; the elements are as safe as any array.
/// Errors: InvalidArgument for shapes, dtypes and devices that do not fit, with both sides in the text.
class TP_API Tensor {
 public:
  Tensor() = default;  ///< No tensor: defined() is false.

  // ---- Without a copy, from elsewhere

  /// Borrows `data`. Empty `strides` mean contiguous; strides count elements and may not be negative.
  static Tensor from_pointer(void* data, DType dtype, Shape shape, Shape strides = {}, Device device = {});

  /// Takes over `data`; `deleter` runs once, when the last handle is gone.
  static Tensor from_pointer(void* data, DType dtype, Shape shape, Shape strides, Device device,
                             std::function<void(void*)> deleter);

  template <typename T>
  static Tensor from_pointer(T* data, Shape shape, Shape strides = {}) {
    return from_pointer(static_cast<void*>(data), dtype_of<T>, std::move(shape), std::move(strides));
  }

  template <typename T>
  static Tensor from_span(std::span<T> elements) {
    return from_pointer(elements.data(), {static_cast<std::int64_t>(elements.size())});
  }

  /// Takes over a DLPack tensor; its deleter runs when the last handle is gone. Throws InvalidArgument, and leaves it
  /// with the caller, for element types and devices that a Tensor does not have.
  static Tensor from_dlpack(DLManagedTensor* managed);

  /// A DLPack tensor that shares these elements and keeps them alive until its deleter is called.
  DLManagedTensor* to_dlpack() const;

  // ---- What it is

  bool defined() const noexcept { return is_defined_; }
  DType dtype() const noexcept { return dtype_; }
  Device device() const noexcept { return device_; }
  const Shape& shape() const noexcept { return shape_; }
  const Shape& strides() const noexcept { return strides_; }  ///< In elements.
  std::int64_t dim() const noexcept { return static_cast<std::int64_t>(shape_.size()); }
  std::int64_t size(std::int64_t dimension) const;  ///< Negative counts from the end.
  std::int64_t numel() const noexcept { return numel_; }
  std::size_t nbytes() const noexcept { return static_cast<std::size_t>(numel_) * element_size(dtype_); }
  bool is_contiguous() const noexcept;

  void* data() const noexcept { return data_; }

  /// Throws InvalidArgument when the elements are no `T`.
  template <typename T>
  T* data() const {
    check_is(dtype_of<T>);
    return static_cast<T*>(data_);
  }

  /// The elements of a contiguous CPU tensor.
  template <typename T>
  std::span<T> span() const {
    check_is_contiguous_on_cpu();
    return {data<T>(), static_cast<std::size_t>(numel_)};
  }

  /// The value of a tensor with one element, converted.
  double item() const;

  // ---- Views: the same elements, seen otherwise

  /// Elements start, start + step, ... before `stop` of one dimension.
  Tensor slice(std::int64_t dimension, std::int64_t start, std::int64_t stop, std::int64_t step = 1) const;
  Tensor select(std::int64_t dimension, std::int64_t index) const;  ///< Drops the dimension.
  Tensor transpose(std::int64_t first, std::int64_t second) const;
  Tensor reshape(Shape shape) const;  ///< Contiguous tensors only; one size may be -1.
  Tensor flatten() const { return reshape({-1}); }

  // ---- New elements

  Tensor clone() const;          ///< Contiguous.
  Tensor contiguous() const;     ///< This tensor if it is contiguous, else a clone.
  Tensor to(DType dtype) const;  ///< This tensor if it has that dtype, else converted.

  // ---- In place; each returns this tensor

  Tensor& fill_(double value);
  Tensor& copy_(const Tensor& source);  ///< Same shape; converts the dtype.
  Tensor& add_(double value);
  Tensor& add_(const Tensor& other);  ///< Same shape and dtype.
  Tensor& mul_(double value);

 private:
  friend Tensor empty(Shape shape, DType dtype);

  void check_is(DType dtype) const;
  void check_is_contiguous_on_cpu() const;

  std::shared_ptr<void> keeper_;  // Empty when the memory is borrowed.
  void* data_ = nullptr;
  Shape shape_;
  Shape strides_;
  std::int64_t numel_ = 0;
  DType dtype_ = DType::kFloat32;
  Device device_;
  bool is_defined_ = false;
};

// ---- Factories: new contiguous elements on the CPU, aligned to 64 bytes.

TP_API Tensor empty(Shape shape, DType dtype = DType::kFloat32);  ///< Elements are not set.
TP_API Tensor full(Shape shape, double value, DType dtype = DType::kFloat32);
TP_API Tensor zeros(Shape shape, DType dtype = DType::kFloat32);
TP_API Tensor ones(Shape shape, DType dtype = DType::kFloat32);
TP_API Tensor arange(std::int64_t count, DType dtype = DType::kInt64);  ///< 0, 1, ..., count - 1

/// Normally distributed; the same seed gives the same elements on every machine of one libm.
TP_API Tensor randn(Shape shape, std::uint64_t seed, DType dtype = DType::kFloat32);

/// A one-dimensional tensor of these values.
template <typename T>
Tensor tensor(std::initializer_list<T> values) {
  Tensor result = empty({static_cast<std::int64_t>(values.size())}, dtype_of<T>);
  T* out = result.data<T>();
  for (const T& value : values) *out++ = value;
  return result;
}

/// Whether shape, dtype and every element agree; NaN equals nothing.
TP_API bool equal(const Tensor& a, const Tensor& b);

/// "tensor([1, 2, 3], dtype=int64)"; long tensors show their ends.
TP_API std::string to_string(const Tensor& tensor);
TP_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// "(2, 3)"
TP_API std::string to_string(const Shape& shape);

}  // namespace tensorplay
