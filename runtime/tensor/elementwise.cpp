/// Tensor's in-place operations and copies between layouts and dtypes.
#include "runtime/tensor/dispatch.hpp"
#include "runtime/tensor/strided_loop.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <cstring>
#include <utility>

namespace tensorplay {
namespace {

void check_on_cpu(const Tensor& tensor, const char* operation) {
  if (!tensor.defined()) throw distributed::InvalidArgument(std::string(operation) + ": the tensor is not defined");
  if (!tensor.device().is_cpu()) {
    throw distributed::InvalidArgument(std::string(operation) + ": the elements are on " + to_string(tensor.device()) +
                                       "; only those on the CPU can be touched");
  }
}

void check_same_shape(const Tensor& a, const Tensor& b, const char* operation) {
  if (a.shape() == b.shape()) return;
  throw distributed::InvalidArgument(std::string(operation) + ": shapes differ: " + to_string(a.shape()) + " and " +
                                     to_string(b.shape()));
}

/// Replaces each element x by function(x).
template <typename T, typename Function>
void transform_in_place(const Tensor& tensor, Function function) {
  T* base = static_cast<T*>(tensor.data());
  for_each_row<1>(tensor.shape(), {&tensor.strides()}, [&](auto offsets, std::int64_t length, auto steps) {
    T* element = base + offsets[0];
    for (std::int64_t i = 0; i < length; ++i, element += steps[0]) *element = function(*element);
  });
}

/// Replaces each pair (x, y) of two tensors' elements by function(x, y), in the first.
template <typename T, typename U, typename Function>
void combine_in_place(const Tensor& target, const Tensor& source, Function function) {
  T* to = static_cast<T*>(target.data());
  const U* from = static_cast<const U*>(source.data());
  for_each_row<2>(target.shape(), {&target.strides(), &source.strides()},
                  [&](auto offsets, std::int64_t length, auto steps) {
                    T* x = to + offsets[0];
                    const U* y = from + offsets[1];
                    for (std::int64_t i = 0; i < length; ++i, x += steps[0], y += steps[1]) *x = function(*x, *y);
                  });
}

/// Half and bfloat16 compute in float, bool as a number.
template <typename T>
auto widen(T value) noexcept {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return static_cast<int>(value);
  } else {
    return value;
  }
}

/// What a number is when it meets elements of type T: integers stay exact, floats keep their precision.
template <typename T>
using ScalarFor = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

/// Integer sums and products wrap around instead of being undefined.
template <typename T, typename Function>
T wrapping(T x, std::int64_t value, Function function) noexcept {
  return static_cast<T>(function(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(value)));
}

template <typename Function>
void apply_scalar(const Tensor& tensor, double value, Function function) {
  dispatch(tensor.dtype(), [&]<typename T>(std::type_identity<T>) {
    const auto scalar = static_cast<ScalarFor<T>>(value);
    transform_in_place<T>(tensor, [&](T x) {
      if constexpr (std::is_same_v<T, bool>) {
        return function(static_cast<std::int64_t>(x), scalar) != 0;
      } else if constexpr (std::is_integral_v<T>) {
        return wrapping(x, scalar, function);
      } else {
        return element_cast<T>(function(static_cast<double>(widen(x)), scalar));
      }
    });
  });
}

}  // namespace

Tensor& Tensor::fill_(double value) {
  check_on_cpu(*this, "fill_");
  dispatch(dtype_, [&]<typename T>(std::type_identity<T>) {
    const T element = element_cast<T>(value);
    transform_in_place<T>(*this, [&](T) { return element; });
  });
  return *this;
}

Tensor& Tensor::copy_(const Tensor& source) {
  check_on_cpu(*this, "copy_");
  check_on_cpu(source, "copy_");
  check_same_shape(*this, source, "copy_");
  if (dtype_ == source.dtype() && is_contiguous() && source.is_contiguous()) {
    if (nbytes() > 0) std::memmove(data_, source.data(), nbytes());
    return *this;
  }
  dispatch(dtype_, [&]<typename T>(std::type_identity<T>) {
    dispatch(source.dtype(), [&]<typename U>(std::type_identity<U>) {
      combine_in_place<T, U>(*this, source, [](T, U y) {
        if constexpr (std::is_same_v<T, U>) {
          return y;
        } else {
          return element_cast<T>(y);
        }
      });
    });
  });
  return *this;
}

Tensor& Tensor::add_(double value) {
  check_on_cpu(*this, "add_");
  apply_scalar(*this, value, [](auto x, auto y) { return x + y; });
  return *this;
}

Tensor& Tensor::mul_(double value) {
  check_on_cpu(*this, "mul_");
  apply_scalar(*this, value, [](auto x, auto y) { return x * y; });
  return *this;
}

Tensor& Tensor::add_(const Tensor& other) {
  check_on_cpu(*this, "add_");
  check_on_cpu(other, "add_");
  check_same_shape(*this, other, "add_");
  other.check_is(dtype_);
  dispatch(dtype_, [&]<typename T>(std::type_identity<T>) {
    combine_in_place<T, T>(*this, other, [](T x, T y) {
      if constexpr (std::is_same_v<T, bool>) {
        return x || y;
      } else if constexpr (std::is_integral_v<T>) {
        return wrapping(x, y, [](auto a, auto b) { return a + b; });
      } else {
        return element_cast<T>(widen(x) + widen(y));
      }
    });
  });
  return *this;
}

}  // namespace tensorplay
