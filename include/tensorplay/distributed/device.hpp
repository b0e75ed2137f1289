/// Where a tensor's memory is.
///
/// Thread rules: values.
#pragma once

#include "tensorplay/distributed/export.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorplay {

enum class DeviceType : std::uint8_t { kCPU, kCUDA, kXPU };

/// "cpu", "cuda", "xpu"
TP_API std::string_view to_string(DeviceType type) noexcept;

/// The reverse of to_string; throws InvalidArgument.
TP_API DeviceType parse_device_type(std::string_view name);

struct Device {
  DeviceType type = DeviceType::kCPU;
  int index = -1;  ///< -1: the current one of its type.

  constexpr Device() noexcept = default;
  constexpr Device(DeviceType device_type, int device_index = -1) noexcept  // NOLINT(google-explicit-constructor)
      : type(device_type), index(device_index) {}

  bool is_cpu() const noexcept { return type == DeviceType::kCPU; }
  bool operator==(const Device&) const noexcept = default;
};

/// "cpu", "cuda:1"
TP_API std::string to_string(const Device& device);

/// The reverse of to_string; throws InvalidArgument.
TP_API Device parse_device(std::string_view text);

}  // namespace tensorplay
