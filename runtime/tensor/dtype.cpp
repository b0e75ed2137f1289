#include "tensorplay/distributed/dtype.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <array>
#include <string>

namespace tensorplay {
namespace {

struct DTypeFacts {
  std::string_view name;
  std::size_t size;
};

constexpr std::array<DTypeFacts, 10> kFacts = {{
    {"uint8", 1},
    {"int8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"float64", 8},
    {"bool", 1},
}};

}  // namespace

std::size_t element_size(DType dtype) noexcept {
  return kFacts[static_cast<std::size_t>(dtype)].size;
}

std::string_view to_string(DType dtype) noexcept {
  return kFacts[static_cast<std::size_t>(dtype)].name;
}

DType parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == name) return static_cast<DType>(i);
  }
  throw distributed::InvalidArgument(std::string("dtype \"").append(name).append("\": give float32, bfloat16, ..."));
}

bool is_floating_point(DType dtype) noexcept {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

}  // namespace tensorplay
