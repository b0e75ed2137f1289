/// Makes "gloo" known when the library is loaded.
#include "runtime/backend/gloo/gloo_backend.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <gloo/transport/tcp/device.h>

#include <dlfcn.h>
#include <string>
#include <utility>

namespace tensorplay::distributed {
namespace {

/// libtorch carries a Gloo of its own under the same symbols; where it comes first, calls would end in the wrong one.
void check_whose_gloo() {
  Dl_info info{};
  const auto function = reinterpret_cast<const void*>(&gloo::transport::tcp::CreateDevice);
  if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return;
  const std::string library = info.dli_fname;
  if (library.find("torch") == std::string::npos) return;
  throw InvalidArgument("backend gloo: its Gloo symbols come from " + library +
                        ", which has another Gloo inside; link libgloo before libtorch (-Wl,--no-as-needed -lgloo)");
}

[[maybe_unused]] const bool g_is_registered = [] {
  BackendTraits traits;
  traits.devices = {DeviceType::kCPU};
  traits.operations = all_op_types();
  Backend::register_backend(
      "gloo",
      [](const BackendOptions& options) {
        check_whose_gloo();
        return std::make_shared<GlooBackend>(options);
      },
      std::move(traits));
  return true;
}();

}  // namespace
}  // namespace tensorplay::distributed
