/// Which backends can be made, by name.
///
/// Built-in backends register themselves when the library is loaded. Thread rules: any thread.
#pragma once

#include "tensorplay/distributed/backend.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::distributed {

struct RegisteredBackend {
  Backend::Creator create;
  std::vector<DeviceType> devices;
};

/// InvalidArgument that lists the names there are when there is none of that name.
RegisteredBackend find_backend(std::string_view name);

}  // namespace tensorplay::distributed
