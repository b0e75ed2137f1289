/// What a tensor's elements are.
///
/// Thread rules: values and pure functions.
#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/half.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tensorplay {

enum class DType : std::uint8_t {
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kBool,
};

/// Bytes of one element.
TP_API std::size_t element_size(DType dtype) noexcept;

/// "float32", "bfloat16", "bool", ...
TP_API std::string_view to_string(DType dtype) noexcept;

/// The reverse of to_string; throws InvalidArgument for a name that is none.
TP_API DType parse_dtype(std::string_view name);

TP_API bool is_floating_point(DType dtype) noexcept;

/// The dtype that stores `T`; only for the ten element types.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::kInt16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};

template <typename T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace tensorplay
