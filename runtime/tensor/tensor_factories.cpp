#include "runtime/tensor/dispatch.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <numbers>

namespace tensorplay {
namespace {

constexpr std::align_val_t kAlignment{64};

/// splitmix64: a counter in, 64 well-mixed bits out, the same on every machine.
std::uint64_t mix(std::uint64_t counter) noexcept {
  std::uint64_t z = counter * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// Uniform in (0, 1].
double unit(std::uint64_t bits) noexcept {
  return (static_cast<double>(bits >> 11) + 1.0) * 0x1p-53;
}

}  // namespace

Tensor empty(Shape shape, DType dtype) {
  // Measured before memory is taken: the null pointer of an empty view cannot be dereferenced.
  Tensor probe = Tensor::from_pointer(reinterpret_cast<void*>(1), dtype, std::move(shape));
  void* memory = ::operator new(std::max<std::size_t>(probe.nbytes(), 1), kAlignment);
  return Tensor::from_pointer(memory, dtype, probe.shape(), {}, {},
                              [](void* owned) { ::operator delete(owned, kAlignment); });
}

Tensor full(Shape shape, double value, DType dtype) {
  Tensor result = empty(std::move(shape), dtype);
  result.fill_(value);
  return result;
}

Tensor zeros(Shape shape, DType dtype) {
  Tensor result = empty(std::move(shape), dtype);
  std::memset(result.data(), 0, result.nbytes());
  return result;
}

Tensor ones(Shape shape, DType dtype) {
  return full(std::move(shape), 1.0, dtype);
}

Tensor arange(std::int64_t count, DType dtype) {
  Tensor result = empty({count}, dtype);
  dispatch(dtype, [&]<typename T>(std::type_identity<T>) {
    T* out = static_cast<T*>(result.data());
    for (std::int64_t i = 0; i < count; ++i) out[i] = element_cast<T>(i);
  });
  return result;
}

Tensor randn(Shape shape, std::uint64_t seed, DType dtype) {
  Tensor result = empty(std::move(shape), dtype);
  const std::uint64_t stream = mix(seed + 1);
  dispatch(dtype, [&]<typename T>(std::type_identity<T>) {
    T* out = static_cast<T*>(result.data());
    for (std::int64_t i = 0; i < result.numel(); ++i) {
      // Box and Muller's transform of two uniform numbers that belong to this element alone.
      const auto counter = stream + 2 * static_cast<std::uint64_t>(i);
      const double radius = std::sqrt(-2.0 * std::log(unit(mix(counter))));
      out[i] = element_cast<T>(radius * std::cos(2.0 * std::numbers::pi * unit(mix(counter + 1))));
    }
  });
  return result;
}

}  // namespace tensorplay
