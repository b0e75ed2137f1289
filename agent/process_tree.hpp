/// What /proc knows of processes: who is whose child, and what a process is doing.
///
/// Everything here is a snapshot that is old when it is read. Only a process's own unreaped children are safe to signal
/// by pid, as their pids cannot be given to anybody else before they are reaped. Thread rules: free functions without
/// state; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace tensorplay::agent {

struct ProcessStat {
  pid_t pid = -1;
  std::string name;  ///< As in ps: 15 bytes at most.
  char state = '?';  ///< R, S, D (uninterruptible), T (stopped), t (traced), Z (ended, not reaped).
  pid_t parent = -1;
  pid_t session = -1;
  std::uint64_t start_ticks = 0;  ///< Since boot; with the pid it names a process for good.
};

/// nullopt when there is no such process.
std::optional<ProcessStat> read_process_stat(pid_t pid);

/// Children of all its threads, zombies included, oldest first. Empty when it has none or is gone.
std::vector<pid_t> children_of(pid_t pid);

/// `pid`'s descendants without itself, parents before children.
std::vector<pid_t> descendants_of(pid_t pid);

/// The value of `name` in the environment the process was started with; nullopt when unset or not readable.
std::optional<std::string> initial_environment_of(pid_t pid, std::string_view name);

/// True when this process has any child, dead or alive, that it has not reaped.
bool has_children();

}  // namespace tensorplay::agent
