/// A group that an exception unwinds through tells the agent before its connections close: installs the hooks for that
/// when the library is loaded.
#include "runtime/elastic/error_file.hpp"
#include "runtime/elastic/throw_log.hpp"
#include "runtime/group/close_hook.hpp"

namespace tensorplay::distributed::elastic {
namespace {

void tell_agent() {
  try {
    const auto path = error_file_path();
    if (path.empty()) return;
    Thrown thrown{"", "an exception unwinds through a process group", WallClock::now()};
    if (auto noted = unwinding_exception()) thrown = std::move(*noted);
    write_error_file(path, error_file_text(thrown, ""));
  } catch (...) {
    // Called from destructors during unwinding: there is nobody left to tell.
  }
}

void note_again(const std::exception_ptr& error) {
  note_rethrow(error);
}

[[maybe_unused]] const bool g_is_installed = [] {
  set_close_hooks({.before_close = &tell_agent, .before_rethrow = &note_again});
  return true;
}();

}  // namespace
}  // namespace tensorplay::distributed::elastic
