/// Makes "gloo" known when the library is loaded.
#include "runtime/backend/gloo/gloo_backend.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

[[maybe_unused]] const bool g_is_registered = [] {
  BackendTraits traits;
  traits.devices = {DeviceType::kCPU};
  traits.operations = all_op_types();
  Backend::register_backend(
      "gloo", [](const BackendOptions& options) { return std::make_shared<GlooBackend>(options); }, std::move(traits));
  return true;
}();

}  // namespace
}  // namespace tensorplay::distributed
