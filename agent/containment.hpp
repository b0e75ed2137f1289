/// The end of everything that descends from this process, for when there is nothing left to wait for.
///
/// This process must be a child subreaper (or pid 1), so that whatever loses its parent falls to it. Only own unreaped
/// children are signalled, level by level: their children fall to us as they die, and it ends when there are none.
/// Thread rules: one thread, and nobody else in the process may wait for children meanwhile.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tensorplay::agent {

/// A process that we had to give up on: in uninterruptible sleep, or another user's.
struct Unkillable {
  pid_t pid = -1;
  std::string name;
  char state = '?';
  std::string why = "SIGKILL has not ended it; going on without";
};

/// "pid 4711 (train), in uninterruptible sleep: SIGKILL has not ended it; going on without"
std::string describe(const Unkillable& process);

/// Makes this process a child subreaper.
void become_subreaper();

/// Sends `signal` to a child of ours, and wakes it if it is stopped: only then can it act on the signal.
void signal_and_wake(pid_t child, int signal);

/// Reaps every child that has ended. True when a child is left.
bool reap_ended_children();

/// Sends SIGKILL to every child.
void kill_children();

/// The children that are left, as a report needs them; zombies are not among them.
std::vector<Unkillable> remaining_children();

/// Waits up to `patience` for all children to end by themselves, then kills and reaps until none is left or `limit` has
/// passed after that. Blocks. Returns what could not be ended. Blocks SIGCHLD in this thread for good.
std::vector<Unkillable> end_all_children(std::chrono::milliseconds patience, std::chrono::milliseconds limit);

}  // namespace tensorplay::agent
