#include "tensorplay/distributed/tensor.hpp"

#include "runtime/tensor/dispatch.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <utility>

namespace tensorplay {
namespace {

using distributed::InvalidArgument;

std::int64_t count_elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const auto size : shape) {
    if (size < 0) throw InvalidArgument("shape " + to_string(shape) + " has a negative size");
    if (__builtin_mul_overflow(count, size, &count)) {
      throw InvalidArgument("shape " + to_string(shape) + " has more elements than can be counted");
    }
  }
  return count;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    if (shape[d] > 1) stride *= shape[d];
  }
  return strides;
}

std::size_t wrap_dimension(std::int64_t dimension, std::int64_t count) {
  const auto wrapped = dimension < 0 ? dimension + count : dimension;
  if (wrapped < 0 || wrapped >= count) {
    throw InvalidArgument("dimension " + std::to_string(dimension) + " of a tensor that has " + std::to_string(count));
  }
  return static_cast<std::size_t>(wrapped);
}

}  // namespace

Tensor Tensor::from_pointer(void* data, DType dtype, Shape shape, Shape strides, Device device) {
  Tensor result;
  result.numel_ = count_elements(shape);
  if (strides.empty()) strides = contiguous_strides(shape);
  if (strides.size() != shape.size()) {
    throw InvalidArgument("shape " + to_string(shape) + " and strides " + to_string(strides) + " differ in length");
  }
  for (const auto stride : strides) {
    if (stride < 0) throw InvalidArgument("strides " + to_string(strides) + ": none may be negative");
  }
  if (data == nullptr && result.numel_ > 0) throw InvalidArgument("a tensor of elements at a null pointer");
  result.data_ = data;
  result.shape_ = std::move(shape);
  result.strides_ = std::move(strides);
  result.dtype_ = dtype;
  result.device_ = device;
  result.is_defined_ = true;
  return result;
}

Tensor Tensor::from_pointer(void* data, DType dtype, Shape shape, Shape strides, Device device,
                            std::function<void(void*)> deleter) {
  Tensor result = from_pointer(data, dtype, std::move(shape), std::move(strides), device);
  result.keeper_ = std::shared_ptr<void>(data, std::move(deleter));
  return result;
}

std::int64_t Tensor::size(std::int64_t dimension) const {
  return shape_[wrap_dimension(dimension, dim())];
}

bool Tensor::is_contiguous() const noexcept {
  if (numel_ == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t d = shape_.size(); d-- > 0;) {
    if (shape_[d] == 1) continue;
    if (strides_[d] != expected) return false;
    expected *= shape_[d];
  }
  return true;
}

void Tensor::check_is(DType dtype) const {
  if (dtype_ == dtype) return;
  throw InvalidArgument("the elements are " + std::string(to_string(dtype_)) + ", not " +
                        std::string(to_string(dtype)));
}

void Tensor::check_is_contiguous_on_cpu() const {
  if (!device_.is_cpu()) throw InvalidArgument("the elements are on " + to_string(device_) + ", not on the CPU");
  if (!is_contiguous()) throw InvalidArgument("the tensor is not contiguous; contiguous() gives one that is");
}

double Tensor::item() const {
  if (numel_ != 1) throw InvalidArgument("item() of a tensor with " + std::to_string(numel_) + " elements");
  if (!device_.is_cpu()) throw InvalidArgument("the element is on " + to_string(device_) + ", not on the CPU");
  return dispatch(
      dtype_, [&]<typename T>(std::type_identity<T>) { return element_cast<double>(*static_cast<const T*>(data_)); });
}

Tensor Tensor::slice(std::int64_t dimension, std::int64_t start, std::int64_t stop, std::int64_t step) const {
  const auto d = wrap_dimension(dimension, dim());
  if (start < 0 || start > stop || stop > shape_[d] || step < 1) {
    throw InvalidArgument("slice " + std::to_string(start) + ":" + std::to_string(stop) + ":" + std::to_string(step) +
                          " of a dimension of size " + std::to_string(shape_[d]));
  }
  Tensor view = *this;
  view.shape_[d] = (stop - start + step - 1) / step;
  view.strides_[d] *= step;
  view.numel_ = count_elements(view.shape_);
  if (view.numel_ > 0) {
    view.data_ = static_cast<std::byte*>(data_) + start * strides_[d] * static_cast<std::int64_t>(element_size(dtype_));
  }
  return view;
}

Tensor Tensor::select(std::int64_t dimension, std::int64_t index) const {
  const auto d = wrap_dimension(dimension, dim());
  Tensor view = slice(dimension, index, index + 1);
  view.shape_.erase(view.shape_.begin() + static_cast<std::ptrdiff_t>(d));
  view.strides_.erase(view.strides_.begin() + static_cast<std::ptrdiff_t>(d));
  return view;
}

Tensor Tensor::transpose(std::int64_t first, std::int64_t second) const {
  const auto a = wrap_dimension(first, dim());
  const auto b = wrap_dimension(second, dim());
  Tensor view = *this;
  std::swap(view.shape_[a], view.shape_[b]);
  std::swap(view.strides_[a], view.strides_[b]);
  return view;
}

Tensor Tensor::reshape(Shape shape) const {
  if (!is_contiguous()) throw InvalidArgument("reshape of a tensor that is not contiguous; call contiguous() first");
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (auto& size : shape) {
    if (size != -1) {
      known *= size;
    } else if (open != nullptr) {
      throw InvalidArgument("reshape to " + to_string(shape) + ": only one size may be -1");
    } else {
      open = &size;
    }
  }
  if (open != nullptr) *open = known == 0 ? 0 : numel_ / known;
  if (count_elements(shape) != numel_) {
    throw InvalidArgument("reshape of " + std::to_string(numel_) + " elements to " + to_string(shape));
  }
  Tensor view = *this;
  view.strides_ = contiguous_strides(shape);
  view.shape_ = std::move(shape);
  return view;
}

Tensor Tensor::clone() const {
  Tensor copy = empty(shape_, dtype_);
  copy.copy_(*this);
  return copy;
}

Tensor Tensor::contiguous() const {
  return is_contiguous() ? *this : clone();
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor converted = empty(shape_, dtype);
  converted.copy_(*this);
  return converted;
}

}  // namespace tensorplay
