#include "runtime/group/backend_registry.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace tensorplay::distributed {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, RegisteredBackend, std::less<>> backends;
};

/// Never destroyed: a backend of a shared object may unregister nothing and outlive this library's statics.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

}  // namespace

void Backend::register_backend(const std::string& name, Creator creator, std::vector<DeviceType> devices) {
  if (name.empty() || devices.empty() || !creator) {
    throw InvalidArgument("register_backend needs a name, a creator and at least one device type");
  }
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  known.backends[name] = {std::move(creator), std::move(devices)};
}

RegisteredBackend find_backend(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (const auto found = known.backends.find(name); found != known.backends.end()) return found->second;
  std::string names;
  for (const auto& [other, backend] : known.backends) names.append(names.empty() ? "" : ", ").append(other);
  throw InvalidArgument(std::string("no backend is named \"").append(name).append("\"; there is: ").append(names));
}

bool is_backend_available(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  return known.backends.find(name) != known.backends.end();
}

}  // namespace tensorplay::distributed
