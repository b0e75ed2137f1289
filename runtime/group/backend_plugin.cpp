/// Backends from shared objects that are loaded at run time.
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/group/backend_registry.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <dlfcn.h>
#include <exception>
#include <mutex>
#include <string>
#include <unistd.h>

namespace tensorplay::distributed {
namespace {

constexpr const char* kPlugins = base::env::kBackendPlugins;

void load_list(const std::string& list) {
  std::size_t start = 0;
  while (start <= list.size()) {
    const auto end = std::min(list.find(':', start), list.size());
    const auto path = list.substr(start, end - start);
    if (!path.empty()) load_backend_plugin(path);
    start = end + 1;
  }
}

}  // namespace

void load_backend_plugin(const std::string& path) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (void* loaded = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) {  // Its initialisers have run already.
    ::dlclose(loaded);
    return;
  }
  const auto before = registration_count();
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    throw InvalidArgument("backend plug-in " + path + ": " + (reason != nullptr ? reason : "cannot be loaded"));
  }
  // Kept for good: what it registered points into it.
  const auto after = registration_count();
  if (after.refused > before.refused) throw InvalidArgument("backend plug-in " + path + ": " + after.last_refusal);
  if (after.accepted == before.accepted) throw InvalidArgument("backend plug-in " + path + " registers no backend");
}

/// Where this library lies; empty when the loader does not tell.
std::string own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&load_backend_plugin), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

void load_optional_backends() {
  static std::once_flag once;
  static thread_local bool is_loading = false;
  if (is_loading) return;
  std::call_once(once, [] {
    is_loading = true;
    for (const char* name : {"mpi", "nccl", "xccl"}) {
      const auto path = own_folder() + "/libtensorplay_backend_" + name + ".so";
      if (::access(path.c_str(), R_OK) != 0) continue;
      try {
        load_backend_plugin(path);
      } catch (const InvalidArgument& error) {
        base::log::warning(error.what());  // As where its libraries are missing on this machine.
      }
    }
    is_loading = false;
  });
}

void load_listed_plugins() {
  static std::once_flag once;
  static std::exception_ptr failure;
  // A plug-in's initialiser may ask which backends there are; it gets those that are here.
  static thread_local bool is_loading = false;
  if (is_loading) return;
  std::call_once(once, [] {
    is_loading = true;
    try {
      load_list(base::env_value(kPlugins).value_or(""));
    } catch (const InvalidArgument& error) {
      failure = std::make_exception_ptr(InvalidArgument(std::string(kPlugins) + ": " + error.what()));
    }
    is_loading = false;
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tensorplay::distributed
