/// Makes "fake" known when the library is loaded.
#include "runtime/backend/fake/fake_backend.hpp"
#include "tensorplay/distributed/hash_store.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

[[maybe_unused]] const bool g_is_registered = [] {
  BackendTraits traits;
  traits.devices = {DeviceType::kCPU, DeviceType::kCUDA, DeviceType::kXPU};
  traits.operations = all_op_types();
  traits.has_no_peers = true;
  Backend::register_backend(
      "fake", [](const BackendOptions& options) { return std::make_shared<FakeBackend>(options); }, std::move(traits));
  return true;
}();

}  // namespace
}  // namespace tensorplay::distributed
