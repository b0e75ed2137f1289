/// Which backends can be made, by name.
///
/// Built-in backends register themselves when the library is loaded, plug-ins when they are. Thread rules: any thread.
#pragma once

#include "tensorplay/distributed/backend.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::distributed {

struct RegisteredBackend {
  Backend::Creator create;
  BackendTraits traits;
};

/// InvalidArgument that lists the names there are when there is none of that name. Loads what TP_BACKEND_PLUGINS lists
/// first; one of them that cannot be loaded is told by every call.
RegisteredBackend find_backend(std::string_view name);

/// How many registrations there have been, refused ones too, and what the last refusal was about.
struct RegistrationCount {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::string last_refusal;
};
RegistrationCount registration_count();

/// Loads what TP_BACKEND_PLUGINS lists, once in a process.
void load_listed_plugins();

/// Loads the backends that this build made as shared objects beside this library, once in a process. Only when one is
/// asked for that is not here: they bring large libraries.
void load_optional_backends();

}  // namespace tensorplay::distributed
