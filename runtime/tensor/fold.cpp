#include "runtime/tensor/fold.hpp"

#include "runtime/tensor/dispatch.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

namespace tensorplay {
namespace {

using distributed::ReduceOp;

/// Elements accumulated at a time: the accumulator of a block stays in the first-level cache.
constexpr std::size_t kBlock = 1024;

/// The type in which elements of type T are added up. Integers use their unsigned twin, so that they wrap.
template <typename T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<Half> {
  using type = float;
};
template <>
struct Accumulator<BFloat16> {
  using type = float;
};
template <>
struct Accumulator<bool> {
  using type = std::uint8_t;
};

template <typename T>
using AccumulatorOf = typename Accumulator<T>::type;

template <typename A>
A wrapping_add(A x, A y) noexcept {
  if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(static_cast<U>(x) + static_cast<U>(y)));
  } else {
    return x + y;
  }
}

template <typename A>
A wrapping_multiply(A x, A y) noexcept {
  if constexpr (std::is_integral_v<A>) {
    // 64 bits: the product of two unsigned shorts would be a signed int that overflows.
    return static_cast<A>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  } else {
    return x * y;
  }
}

struct Add {
  template <typename A>
  A operator()(A x, A y) const noexcept {
    return wrapping_add(x, y);
  }
};
struct Multiply {
  template <typename A>
  A operator()(A x, A y) const noexcept {
    return wrapping_multiply(x, y);
  }
};
/// NaN wins, whichever side it is on.
struct Least {
  template <typename A>
  A operator()(A x, A y) const noexcept {
    return (y < x || y != y) ? y : x;
  }
};
struct Greatest {
  template <typename A>
  A operator()(A x, A y) const noexcept {
    return (y > x || y != y) ? y : x;
  }
};
struct And {
  template <typename A>
  A operator()(A x, A y) const noexcept {
    return static_cast<A>(x & y);
  }
};
struct Or {
  template <typename A>
  A operator()(A x, A y) const noexcept {
    return static_cast<A>(x | y);
  }
};
struct Xor {
  template <typename A>
  A operator()(A x, A y) const noexcept {
    return static_cast<A>(x ^ y);
  }
};

template <typename T>
AccumulatorOf<T> load(T value) noexcept {
  return static_cast<AccumulatorOf<T>>(value);
}

template <typename T>
T store(AccumulatorOf<T> value) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else {
    return static_cast<T>(value);
  }
}

template <typename T, typename Combine, typename Finish>
void fold_typed(std::span<const void* const> sources, void* out, std::size_t count, Combine combine, Finish finish) {
  using A = AccumulatorOf<T>;
  alignas(64) std::array<A, kBlock> sums;
  T* const result = static_cast<T*>(out);
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t length = std::min(kBlock, count - start);
    const T* first = static_cast<const T*>(sources[0]) + start;
    for (std::size_t i = 0; i < length; ++i) sums[i] = load<T>(first[i]);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      const T* next = static_cast<const T*>(sources[s]) + start;
      for (std::size_t i = 0; i < length; ++i) sums[i] = combine(sums[i], load<T>(next[i]));
    }
    for (std::size_t i = 0; i < length; ++i) result[start + i] = store<T>(finish(sums[i]));
  }
}

struct Keep {
  template <typename A>
  A operator()(A value) const noexcept {
    return value;
  }
};

template <typename T>
void fold_average(std::span<const void* const> sources, void* out, std::size_t count) {
  using A = AccumulatorOf<T>;
  if constexpr (std::is_integral_v<A>) {
    // Summed in 64 bits: the average of int8 values fits although their sum does not.
    T* const result = static_cast<T*>(out);
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t sum = 0;
      for (const void* source : sources) sum = wrapping_add<std::int64_t>(sum, static_cast<const T*>(source)[i]);
      result[i] = static_cast<T>(sum / static_cast<std::int64_t>(sources.size()));
    }
  } else {
    const A divisor = static_cast<A>(sources.size());
    fold_typed<T>(sources, out, count, Add{}, [divisor](A sum) { return sum / divisor; });
  }
}

template <typename T>
void fold_premultiplied(double factor, std::span<const void* const> sources, void* out, std::size_t count) {
  using A = AccumulatorOf<T>;
  if constexpr (std::is_floating_point_v<A>) {
    const A scale = static_cast<A>(factor);
    alignas(64) std::array<A, kBlock> sums;
    T* const result = static_cast<T*>(out);
    for (std::size_t start = 0; start < count; start += kBlock) {
      const std::size_t length = std::min(kBlock, count - start);
      std::fill_n(sums.begin(), length, A{0});
      for (const void* source : sources) {
        const T* next = static_cast<const T*>(source) + start;
        for (std::size_t i = 0; i < length; ++i) sums[i] += load<T>(next[i]) * scale;
      }
      for (std::size_t i = 0; i < length; ++i) result[start + i] = store<T>(sums[i]);
    }
  }
}

/// bool as torch's backends have it: SUM and MAX are "or", PRODUCT and MIN are "and".
ReduceOp::Kind meaning_for_bool(ReduceOp::Kind kind) {
  switch (kind) {
    case ReduceOp::SUM:
    case ReduceOp::MAX:
      return ReduceOp::BOR;
    case ReduceOp::PRODUCT:
    case ReduceOp::MIN:
      return ReduceOp::BAND;
    default:
      return kind;
  }
}

template <typename T>
void fold_as(const ReduceOp& op, std::span<const void* const> sources, void* out, std::size_t count) {
  const auto kind = std::is_same_v<T, bool> ? meaning_for_bool(op.kind()) : op.kind();
  switch (kind) {
    case ReduceOp::SUM:
      return fold_typed<T>(sources, out, count, Add{}, Keep{});
    case ReduceOp::PRODUCT:
      return fold_typed<T>(sources, out, count, Multiply{}, Keep{});
    case ReduceOp::MIN:
      return fold_typed<T>(sources, out, count, Least{}, Keep{});
    case ReduceOp::MAX:
      return fold_typed<T>(sources, out, count, Greatest{}, Keep{});
    case ReduceOp::AVG:
      return fold_average<T>(sources, out, count);
    case ReduceOp::PREMUL_SUM:
      return fold_premultiplied<T>(op.factor(), sources, out, count);
    case ReduceOp::BAND:
    case ReduceOp::BOR:
    case ReduceOp::BXOR:
      if constexpr (std::is_integral_v<T>) {
        if (kind == ReduceOp::BAND) return fold_typed<T>(sources, out, count, And{}, Keep{});
        if (kind == ReduceOp::BOR) return fold_typed<T>(sources, out, count, Or{}, Keep{});
        return fold_typed<T>(sources, out, count, Xor{}, Keep{});
      }
  }
}

}  // namespace

void check_can_fold(const ReduceOp& op, DType dtype) {
  const bool is_bitwise = op.kind() == ReduceOp::BAND || op.kind() == ReduceOp::BOR || op.kind() == ReduceOp::BXOR;
  const bool fits = is_bitwise                          ? !is_floating_point(dtype)
                    : op.kind() == ReduceOp::PREMUL_SUM ? is_floating_point(dtype)
                    : op.kind() == ReduceOp::AVG        ? dtype != DType::kBool
                                                        : true;
  if (fits) return;
  throw distributed::InvalidArgument("ReduceOp " + std::string(to_string(op)) + " has no meaning for " +
                                     std::string(to_string(dtype)) + " elements");
}

void fold(const ReduceOp& op, DType dtype, std::span<const void* const> sources, void* out, std::size_t count) {
  check_can_fold(op, dtype);
  dispatch(dtype, [&]<typename T>(std::type_identity<T>) { fold_as<T>(op, sources, out, count); });
}

}  // namespace tensorplay
