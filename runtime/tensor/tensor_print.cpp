#include "runtime/tensor/dispatch.hpp"
#include "runtime/tensor/strided_loop.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <array>
#include <cstdio>
#include <ostream>

namespace tensorplay {
namespace {

constexpr std::int64_t kEdge = 3;        // Elements shown at each end of a long dimension.
constexpr std::int64_t kShowAll = 1000;  // Tensors up to this size are shown whole.

std::string format_element(const Tensor& tensor, std::int64_t offset) {
  return dispatch(tensor.dtype(), [&]<typename T>(std::type_identity<T>) -> std::string {
    const T value = static_cast<const T*>(tensor.data())[offset];
    if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      return std::to_string(value);
    } else {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%.6g", static_cast<double>(value));
      return text.data();
    }
  });
}

void print_dimension(const Tensor& tensor, std::size_t d, std::int64_t offset, std::string& out) {
  if (d == tensor.shape().size()) {
    out += format_element(tensor, offset);
    return;
  }
  const bool is_long = tensor.numel() > kShowAll && tensor.shape()[d] > 2 * kEdge;
  out += '[';
  for (std::int64_t i = 0; i < tensor.shape()[d]; ++i) {
    if (i > 0) out += ", ";
    if (is_long && i == kEdge) {
      out += "..., ";
      i = tensor.shape()[d] - kEdge;
    }
    print_dimension(tensor, d + 1, offset + i * tensor.strides()[d], out);
  }
  out += ']';
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d > 0) text += ", ";
    text += std::to_string(shape[d]);
  }
  return text + ")";
}

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor()";
  std::string text = "tensor(";
  if (tensor.device().is_cpu()) {
    print_dimension(tensor, 0, 0, text);
  } else {
    text += "shape=" + to_string(tensor.shape()) + ", device=" + to_string(tensor.device());
  }
  if (tensor.dtype() != DType::kFloat32) text += ", dtype=" + std::string(to_string(tensor.dtype()));
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << to_string(tensor);
}

bool equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  bool same = true;
  dispatch(a.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* left = static_cast<const T*>(a.data());
    const T* right = static_cast<const T*>(b.data());
    for_each_row<2>(a.shape(), {&a.strides(), &b.strides()}, [&](auto offsets, std::int64_t length, auto steps) {
      for (std::int64_t i = 0; i < length; ++i) {
        same = same && left[offsets[0] + i * steps[0]] == right[offsets[1] + i * steps[1]];
      }
    });
  });
  return same;
}

}  // namespace tensorplay
