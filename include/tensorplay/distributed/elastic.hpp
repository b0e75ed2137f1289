/// What a worker knows of the agent that started it, and what it tells the agent when it fails.
///
///     int main(int argc, char** argv) {
///       return tensorplay::distributed::elastic::record([&] { return train(argc, argv); });
///     }
#pragma once

#include "tensorplay/distributed/export.hpp"

#include <functional>
#include <string>

namespace tensorplay::distributed::elastic {

/// Runs `main` and returns what it returns. Whatever ends it otherwise is told to the agent through the file that
/// TORCHELASTIC_ERROR_FILE names (nothing is written where that is unset):
///
/// - an exception: its type, its text and the time of the throw; a line on stderr; 1 is returned;
/// - SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT and std::terminate: the signal and a native stack trace, also on stderr;
///   then the process ends by that signal, as it would have.
///
/// The file is written beside its name and renamed into place, in the JSON form of torch's `record`: a reader sees all
/// of it or nothing. An exception that unwinds through a process group has been written before the group closed its
/// connections. The signal handlers are installed for the time of the call, where the program has none of its own.
/// Thread rules: call it once, from the main thread.
TP_API int record(const std::function<int()>& main);

/// The same for the main function itself.
TP_API int record(int (*main)(int, char**), int argc, char** argv);

TP_API bool is_launched();    ///< Whether an agent started this process (TORCHELASTIC_RUN_ID is set).
TP_API std::string run_id();  ///< Empty without an agent.
TP_API int restart_count();   ///< How often the world was restarted before this attempt; 0 without an agent.
TP_API int max_restarts();    ///< 0 without an agent.
TP_API int round();  ///< How often the world was formed before this time, for whatever reason; 0 without tprun.

}  // namespace tensorplay::distributed::elastic
