#include "runtime/group/backend_string.hpp"

#include "runtime/group/backend_registry.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cctype>

namespace tensorplay::distributed {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

std::map<DeviceType, std::string> parse_backend_string(std::string_view text) {
  const std::string all = text.empty() ? "gloo" : lower(text);
  std::map<DeviceType, std::string> result;
  if (all.find_first_of(":,") == std::string::npos) {
    for (const auto device : find_backend(all).traits.devices) result[device] = all;
    return result;
  }
  std::size_t start = 0;
  while (start <= all.size()) {
    const auto end = std::min(all.find(',', start), all.size());
    const auto pair = all.substr(start, end - start);
    const auto colon = pair.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == pair.size() ||
        pair.find(':', colon + 1) != std::string::npos) {
      throw InvalidArgument(std::string("backend \"")
                                .append(text)
                                .append("\": give one name, or device:backend pairs such as cpu:gloo,cuda:nccl"));
    }
    const auto device = parse_device_type(pair.substr(0, colon));
    const auto name = pair.substr(colon + 1);
    const auto devices = find_backend(name).traits.devices;
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      throw InvalidArgument(std::string("backend \"")
                                .append(text)
                                .append("\": ")
                                .append(name)
                                .append(" does not serve ")
                                .append(to_string(device)));
    }
    if (!result.emplace(device, name).second) {
      throw InvalidArgument(
          std::string("backend \"").append(text).append("\" names ").append(to_string(device)).append(" twice"));
    }
    start = end + 1;
  }
  return result;
}

}  // namespace tensorplay::distributed
