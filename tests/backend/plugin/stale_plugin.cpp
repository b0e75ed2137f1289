/// A plug-in that was built for another version of the library.
#include "tensorplay/distributed/backend.hpp"

namespace {

using namespace tensorplay::distributed;

[[maybe_unused]] const bool g_is_registered = [] {
  BackendTraits traits;
  traits.devices = {tensorplay::DeviceType::kCPU};
  Backend::register_backend(
      "stale", [](const BackendOptions&) { return MadeBackend(); }, traits, kBackendAbiVersion + 1);
  return true;
}();

}  // namespace
