#include "tensorplay/distributed/half.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using tensorplay::BFloat16;
using tensorplay::Half;

TEST_CASE("every binary16 value survives the way to float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = tensorplay::float_from_half_bits(static_cast<std::uint16_t>(bits));
    const auto back = tensorplay::half_bits_from_float(value);
    if (std::isnan(value)) {
      REQUIRE((back & 0x7c00) == 0x7c00);
      REQUIRE((back & 0x03ff) != 0);
    } else {
      REQUIRE(back == bits);
    }
  }
}

TEST_CASE("every bfloat16 value survives the way to float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = tensorplay::float_from_bfloat16_bits(static_cast<std::uint16_t>(bits));
    const auto back = tensorplay::bfloat16_bits_from_float(value);
    if (std::isnan(value)) {
      REQUIRE(std::isnan(tensorplay::float_from_bfloat16_bits(back)));
    } else {
      REQUIRE(back == bits);
    }
  }
}

TEST_CASE("a float between two 16-bit values becomes the nearer one, and the even one in the middle") {
  REQUIRE(Half(1.0F + 0x1p-11F).bits == 0x3c00);             // Halfway: down to even.
  REQUIRE(Half(1.0F + 3 * 0x1p-11F).bits == 0x3c02);         // Halfway: up to even.
  REQUIRE(Half(1.0F + 0x1p-11F + 0x1p-20F).bits == 0x3c01);  // Just above the middle.
  REQUIRE(Half(0x1p-25F).bits == 0);                         // Half of the smallest subnormal: to even zero.
  REQUIRE(Half(0x1.8p-25F).bits == 1);
  REQUIRE(BFloat16(1.0F + 0x1p-8F).bits == 0x3f80);
  REQUIRE(BFloat16(1.0F + 3 * 0x1p-8F).bits == 0x3f82);
}

TEST_CASE("what is too large for a 16-bit type becomes infinity") {
  REQUIRE(Half(65519.0F).bits == 0x7bff);
  REQUIRE(Half(65520.0F).bits == 0x7c00);
  REQUIRE(Half(-1e30F).bits == 0xfc00);
  REQUIRE(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::max()))));
}
