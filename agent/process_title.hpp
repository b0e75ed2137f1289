/// The name a process shows in ps, top and /proc, so that people and scripts can tell the agent from the guardian.
#pragma once

namespace tensorplay::agent {

/// Sets this process's name (`pkill NAME`; 15 bytes at most) and its command line (`pkill -f`) to `name`, by writing
/// over argv: nothing may look at argv afterwards. Nothing in /proc is opened for it: every process that did costs
/// whoever reaps it a walk through the kernel's cache. Call from the main thread.
void set_process_title(const char* name);

}  // namespace tensorplay::agent
