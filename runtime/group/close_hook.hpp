/// How a group tells the agent about an exception before it closes its connections, without knowing who tells.
///
/// runtime/elastic stands above this folder and installs the hooks when the library is loaded; without it nothing
/// happens. Thread rules: set once, before main; the rest may be called from any thread.
#pragma once

#include <exception>

namespace tensorplay::distributed {

struct CloseHooks {
  void (*before_close)() = nullptr;                             ///< An exception unwinds through a group.
  void (*before_rethrow)(const std::exception_ptr&) = nullptr;  ///< An exception of another thread goes on in this one.
};

void set_close_hooks(CloseHooks hooks) noexcept;

/// Calls before_close if an exception unwinds in this thread; whether one does. Call it before any connection closes.
bool tell_agent_if_unwinding() noexcept;

/// Throws what another thread caught.
[[noreturn]] void rethrow(const std::exception_ptr& error);

}  // namespace tensorplay::distributed
