/// From a dtype known at run time to a type known at compile time.
#pragma once

#include "tensorplay/distributed/dtype.hpp"

#include <type_traits>
#include <utility>

namespace tensorplay {

/// Calls `function(std::type_identity<T>{})` with the element type of `dtype`.
template <typename Function>
decltype(auto) dispatch(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kUInt8:
      return function(std::type_identity<std::uint8_t>{});
    case DType::kInt8:
      return function(std::type_identity<std::int8_t>{});
    case DType::kInt16:
      return function(std::type_identity<std::int16_t>{});
    case DType::kInt32:
      return function(std::type_identity<std::int32_t>{});
    case DType::kInt64:
      return function(std::type_identity<std::int64_t>{});
    case DType::kFloat16:
      return function(std::type_identity<Half>{});
    case DType::kBFloat16:
      return function(std::type_identity<BFloat16>{});
    case DType::kFloat64:
      return function(std::type_identity<double>{});
    case DType::kBool:
      return function(std::type_identity<bool>{});
    case DType::kFloat32:
      break;
  }
  return function(std::type_identity<float>{});
}

/// A number as an element of type T; conversions follow the language's own.
template <typename T, typename Value>
constexpr T element_cast(Value value) noexcept {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return static_cast<double>(value) != 0.0;
  } else if constexpr (std::is_same_v<Value, Half> || std::is_same_v<Value, BFloat16>) {
    return static_cast<T>(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace tensorplay
