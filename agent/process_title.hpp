/// The name a process shows in ps, top and /proc, so that people and scripts can tell the agent from the guardian.
#pragma once

#include <string>

namespace tensorplay::agent {

/// Sets the thread's name (`pkill NAME`; 15 bytes) and, where the kernel permits, the command line (`pkill -f`) of this
/// process to `title`. argv itself is left alone. Call from the main thread.
void set_process_title(const char* name, const std::string& title);

}  // namespace tensorplay::agent
