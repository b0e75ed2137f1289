#include "runtime/group/close_hook.hpp"

namespace tensorplay::distributed {
namespace {

constinit CloseHooks g_hooks;

}  // namespace

void set_close_hooks(CloseHooks hooks) noexcept {
  g_hooks = hooks;
}

bool tell_agent_if_unwinding() noexcept {
  if (std::uncaught_exceptions() == 0) return false;
  if (g_hooks.before_close != nullptr) g_hooks.before_close();
  return true;
}

void rethrow(const std::exception_ptr& error) {
  if (g_hooks.before_rethrow != nullptr) g_hooks.before_rethrow(error);
  std::rethrow_exception(error);
}

}  // namespace tensorplay::distributed
