#include "runtime/base/environment.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <charconv>
#include <cstdlib>

namespace tensorplay::base {

std::optional<std::string> env_value(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::optional<std::string> env_knob(std::string_view torch_name) {
  constexpr std::string_view kTorch = "TORCH_";
  if (torch_name.starts_with(kTorch)) {
    auto own = env_value("TP_" + std::string(torch_name.substr(kTorch.size())));
    if (own && !own->empty()) return own;
  }
  auto value = env_value(std::string(torch_name));
  if (value && value->empty()) return std::nullopt;
  return value;
}

std::optional<long> env_integer(const std::string& name) {
  const auto text = env_value(name);
  if (!text || text->empty()) return std::nullopt;
  long number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc{} || stop != end) {
    throw distributed::InvalidArgument(name + "=" + *text + ": not an integer");
  }
  return number;
}

}  // namespace tensorplay::base
