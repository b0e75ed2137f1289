#include "runtime/group/backend_registry.hpp"

#include "runtime/base/log.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <utility>

namespace tensorplay::distributed {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, RegisteredBackend, std::less<>> backends;
  RegistrationCount count;
};

/// Never destroyed: a backend of a shared object may unregister nothing and outlive this library's statics.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// A plug-in of another ABI version is refused without an exception: it registers from a static initialiser, where one
/// would end the process.
bool refuse_foreign_abi(Registry& known, const std::string& name, std::uint32_t abi) {
  if (abi == kBackendAbiVersion) return false;
  const std::string text = "backend " + name + " was built for ABI version " + std::to_string(abi) +
                           " of backends; this library has version " + std::to_string(kBackendAbiVersion) +
                           "; build it again";
  ++known.count.refused;
  known.count.last_refusal = text;
  base::log::warning(text);
  return true;
}

bool is_known(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  return known.backends.find(name) != known.backends.end();
}

std::string names_of(const Registry& known) {
  std::string names;
  for (const auto& [name, backend] : known.backends) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

}  // namespace

void Backend::register_backend(const std::string& name, Creator creator, bool extended_api,
                               std::vector<DeviceType> devices, std::uint32_t abi) {
  if (creator && creator.is_extended() != extended_api) {
    throw InvalidArgument("register_backend " + name + ": the creator takes " +
                          (creator.is_extended() ? "BackendOptions, so extended_api has to be true"
                                                 : "(store, rank, size, timeout), so extended_api has to be false"));
  }
  if (devices.empty()) devices = {DeviceType::kCPU};
  BackendTraits traits;
  traits.devices = std::move(devices);
  register_backend(name, std::move(creator), std::move(traits), abi);
}

void Backend::register_backend(const std::string& name, Creator creator, BackendTraits traits, std::uint32_t abi) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (refuse_foreign_abi(known, name, abi)) return;
  if (name.empty() || name.find_first_of(":, ") != std::string::npos || !creator || traits.devices.empty()) {
    throw InvalidArgument("register_backend needs a name without ':', ',' and spaces, a creator and a device type");
  }
  known.backends[lower(name)] = {std::move(creator), std::move(traits)};
  ++known.count.accepted;
}

RegistrationCount registration_count() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  return known.count;
}

RegisteredBackend find_backend(std::string_view name) {
  load_listed_plugins();
  if (!is_known(name)) load_optional_backends();
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (const auto found = known.backends.find(name); found != known.backends.end()) return found->second;
  std::string text =
      std::string("no backend is named \"").append(name).append("\"; there is: ").append(names_of(known));
  if (name == "mpi" || name == "nccl" || name == "xccl") text += "; this build was configured without it";
  if (!known.count.last_refusal.empty()) text.append("; ").append(known.count.last_refusal);
  throw InvalidArgument(text);
}

BackendTraits backend_traits(std::string_view name) {
  return find_backend(name).traits;
}

bool is_backend_available(std::string_view name) {
  load_listed_plugins();
  if (!is_known(name)) load_optional_backends();
  return is_known(name);
}

std::vector<std::string> available_backends() {
  load_listed_plugins();
  load_optional_backends();
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  std::vector<std::string> names;
  for (const auto& [name, backend] : known.backends) names.push_back(name);
  return names;
}

}  // namespace tensorplay::distributed
