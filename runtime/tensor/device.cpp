#include "tensorplay/distributed/device.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <charconv>

namespace tensorplay {

std::string_view to_string(DeviceType type) noexcept {
  switch (type) {
    case DeviceType::kCPU:
      return "cpu";
    case DeviceType::kCUDA:
      return "cuda";
    case DeviceType::kXPU:
      return "xpu";
  }
  return "cpu";
}

DeviceType parse_device_type(std::string_view name) {
  for (const auto type : {DeviceType::kCPU, DeviceType::kCUDA, DeviceType::kXPU}) {
    if (to_string(type) == name) return type;
  }
  throw distributed::InvalidArgument(std::string("device type \"").append(name).append("\": give cpu, cuda or xpu"));
}

std::string to_string(const Device& device) {
  std::string text(to_string(device.type));
  if (device.index >= 0) text.append(":").append(std::to_string(device.index));
  return text;
}

Device parse_device(std::string_view text) {
  const auto colon = text.find(':');
  Device device(parse_device_type(text.substr(0, colon)));
  if (colon == std::string_view::npos) return device;
  const auto digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), device.index);
  if (error != std::errc{} || end != digits.data() + digits.size() || device.index < 0) {
    throw distributed::InvalidArgument(
        std::string("device \"").append(text).append("\": give cpu, cuda:0, xpu:1, ..."));
  }
  return device;
}

}  // namespace tensorplay
