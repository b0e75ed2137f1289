/// The backend argument of init_process_group: which backend serves which device.
#pragma once

#include "tensorplay/distributed/device.hpp"

#include <map>
#include <string>
#include <string_view>

namespace tensorplay::distributed {

/// "gloo" or "cpu:gloo,cuda:nccl", in any case, to backend names in lower case by device. A bare name stands for every
/// device that backend serves; an empty text for gloo. InvalidArgument for a text of another form, a device named
/// twice, an unknown backend, and a backend that does not serve the device it is paired with.
std::map<DeviceType, std::string> parse_backend_string(std::string_view text);

}  // namespace tensorplay::distributed
