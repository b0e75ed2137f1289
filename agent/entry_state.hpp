/// What tprun found when it was started and must hand on to its workers unchanged, though it changes it for itself:
/// ignored signals, the limit of open files, the OOM score.
///
/// Thread rules: entry_state() captures on its first call, which belongs to the first lines of main(), while there is
/// one thread; after that it is read-only.
#pragma once

#include <bitset>
#include <optional>
#include <string>

#include <sys/resource.h>

namespace tensorplay::agent {

struct EntryState {
  /// By signal number: SIG_IGN at entry. SIGCHLD is never in it: nobody can want a worker that cannot wait.
  std::bitset<65> ignored_signals;
  rlimit open_files{};
};

const EntryState& entry_state();

/// /proc/self/cgroup as it was at the first call: a line for each hierarchy. Empty when it cannot be read.
const std::string& own_cgroups();

/// Raises this process's soft limit of open files to the hard one: a thousand workers with two pipes each need more
/// than the usual 1,024. Workers get the original back.
void raise_open_file_limit();

/// Makes the kernel's OOM killer prefer others to this process and the children it forks, where that is permitted.
/// Workers get the original score back. Returns false when it is not permitted (no CAP_SYS_RESOURCE).
bool become_worse_oom_victim();

/// The score to give back to workers; nullopt when it was not changed.
std::optional<int> original_oom_score();

}  // namespace tensorplay::agent
