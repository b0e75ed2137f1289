/// One worker process: how it is born.
///
/// Spawning happens on the main thread only, since the parent-death signal is tied to the thread that made the child.
/// The child shares our memory until its execve (as vfork does), which makes a spawn as cheap for an agent with a large
/// heap as for a small one, and lets an exec error come back without a pipe.
///
/// A child that we have not reaped cannot lose its pid to anybody else, and we alone reap: so a pid is all that is
/// needed to signal it safely, and a thousand workers cost no descriptors.
#pragma once

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

/// Starts one worker: own session, parent-death signal SIGKILL, empty signal mask, default dispositions (but for
/// signals ignored at tprun's entry), tprun's original limit of open files and OOM score, and no descriptor but its
/// three.
///
/// Returns the pid once execve has succeeded; throws StartupFailure when it has not. Blocks for as long as execve
/// takes: some tenths of a millisecond, longer when the program lies on a network file system that does not answer.
pid_t spawn_worker(const SpawnRequest& request);

}  // namespace tensorplay::agent
