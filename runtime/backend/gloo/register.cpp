/// Makes "gloo" known when the library is loaded.
#include "runtime/backend/gloo/gloo_backend.hpp"

namespace tensorplay::distributed {
namespace {

[[maybe_unused]] const bool g_is_registered = [] {
  Backend::register_backend(
      "gloo", [](const BackendOptions& options) { return std::make_shared<GlooBackend>(options); }, {DeviceType::kCPU});
  return true;
}();

}  // namespace
}  // namespace tensorplay::distributed
