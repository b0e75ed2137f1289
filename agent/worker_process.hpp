/// One worker process: how it is born. Spawning happens on the main thread only, since the parent-death signal is
/// tied to the thread that made the child.
#pragma once

#include "runtime/base/fd.hpp"

#include <optional>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tensorplay::agent {

struct SpawnRequest {
  std::vector<std::string> argv;         ///< argv[0] is executed as it is; no search.
  std::vector<std::string> environment;  ///< "NAME=value", the whole environment.
  int stdin_fd = -1;                     ///< -1: /dev/null.
  int stdout_fd = -1;                    ///< -1: inherited.
  int stderr_fd = -1;                    ///< -1: inherited.
  std::optional<cpu_set_t> cpus;         ///< Affinity; nullopt: inherited.
  int cgroup_fd = -1;                    ///< Born into this cgroup v2 directory; -1: none.
};

struct SpawnedProcess {
  pid_t pid = -1;
  base::UniqueFd pidfd;
};

/// execve failed, or there was no process to be had. `exit_code` is what a shell would give: 126 or 127, or 70.
class StartupFailure : public std::runtime_error {
 public:
  StartupFailure(const std::string& what, int error, int exit_code)
      : std::runtime_error(what), error_(error), exit_code_(exit_code) {}
  int error() const noexcept { return error_; }
  int exit_code() const noexcept { return exit_code_; }

 private:
  int error_;
  int exit_code_;
};

/// Starts one worker in its own session, with the parent-death signal SIGKILL, an empty signal mask, default
/// dispositions (but for signals ignored at tprun's entry) and the RLIMIT_NOFILE tprun was started with.
/// Returns once execve has succeeded; throws StartupFailure when it has not.
SpawnedProcess spawn_worker(const SpawnRequest& request);

}  // namespace tensorplay::agent
