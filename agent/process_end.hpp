/// How the pid that the user sees goes away, for good or until `fg`.
#pragma once

namespace tensorplay::agent {

/// Ends this process by `signal`, as a shell that waits for it expects, without a core file. Returns 128 + `signal`
/// where that cannot be done: pid 1 does not die of its own signals, and some signals do not kill.
int end_by_signal(int signal);

/// Stops this process as Ctrl-Z would have, had SIGTSTP not been blocked. Returns once it goes on.
void stop_by_terminal();

}  // namespace tensorplay::agent
