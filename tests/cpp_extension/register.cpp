// Runs when the shared object is loaded: by the program's linker, by TP_BACKEND_PLUGINS, or by load_backend_plugin().
#include "relay_backend.hpp"

#include <memory>

namespace {

[[maybe_unused]] const bool is_registered = [] {
  relay::dist::Backend::register_backend(
      "relay",
      [](const relay::dist::BackendOptions& options) { return std::make_shared<relay::RelayBackend>(options); },
      relay::RelayBackend::traits());
  return true;
}();

}  // namespace
