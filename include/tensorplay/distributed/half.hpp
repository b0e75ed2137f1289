/// The two 16-bit floating point types, as storage: arithmetic is done in float, each store rounds to nearest even.
///
/// Thread rules: values. Free of state and of surprises under -ffast-math only as far as subnormals are kept.
#pragma once

#include <bit>
#include <cstdint>

namespace tensorplay {

/// float to IEEE 754 binary16 bits, rounded to nearest even; NaN stays NaN, too large becomes infinity.
constexpr std::uint16_t half_bits_from_float(float value) noexcept {
  constexpr std::uint32_t kInfinity = 255U << 23;
  constexpr std::uint32_t kOverflow = (127U + 16U) << 23;        // 65536: from here on every value rounds to infinity.
  constexpr std::uint32_t kSmallestNormal = (127U - 14U) << 23;  // 2^-14
  constexpr std::uint32_t kSubnormalShift = (127U - 15U + 23U - 10U + 1U) << 23;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Adding a power of two whose last mantissa bit weighs 2^-24 lets the FPU itself round a subnormal.
  const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kSubnormalShift);
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - kSubnormalShift;
  const std::uint32_t is_odd = (magnitude >> 13) & 1U;
  const std::uint32_t normal = (magnitude - ((127U - 15U) << 23) + 0xfffU + is_odd) >> 13;
  std::uint32_t result = magnitude < kSmallestNormal ? subnormal : normal;
  result = magnitude >= kOverflow ? (magnitude > kInfinity ? 0x7e00U : 0x7c00U) : result;
  return static_cast<std::uint16_t>(result | sign);
}

/// IEEE 754 binary16 bits to float; exact.
constexpr float float_from_half_bits(std::uint16_t bits) noexcept {
  constexpr std::uint32_t kRebias = (127U + 112U) << 23;  // 2^112, the difference of the exponents' biases
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * std::bit_cast<float>(kRebias);
  const std::uint32_t special = magnitude >= (0x7c00U << 13) ? 0x7f800000U : 0U;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

/// float to bfloat16 bits, rounded to nearest even; NaN stays NaN.
constexpr std::uint16_t bfloat16_bits_from_float(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return static_cast<std::uint16_t>(is_nan ? ((bits >> 16) | 0x40U) : rounded);
}

/// bfloat16 bits to float; exact.
constexpr float float_from_bfloat16_bits(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// IEEE 754 binary16.
struct Half {
  std::uint16_t bits = 0;
  constexpr Half() noexcept = default;
  constexpr explicit Half(float value) noexcept : bits(half_bits_from_float(value)) {}
  constexpr operator float() const noexcept { return float_from_half_bits(bits); }  // NOLINT(google-explicit-*)
};

/// The upper half of a float: the same range, 8 bits of precision.
struct BFloat16 {
  std::uint16_t bits = 0;
  constexpr BFloat16() noexcept = default;
  constexpr explicit BFloat16(float value) noexcept : bits(bfloat16_bits_from_float(value)) {}
  constexpr operator float() const noexcept { return float_from_bfloat16_bits(bits); }  // NOLINT(google-explicit-*)
};

}  // namespace tensorplay
