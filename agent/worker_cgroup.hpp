/// Cgroups of our own below the one tprun was started in, where that has been delegated to us: one for each worker,
/// born into it. Then who descends from whom is the kernel's knowledge, and one write kills a worker's whole tree at
/// once, faster than anything in it can fork.
///
/// Delegated means: systemd (or who set it up) marked the cgroup with the attribute user.delegate, or trusted.delegate,
/// = 1, or it belongs to the user tprun runs as, who is not root. A root tprun never takes what nobody gave it.
/// Without delegation everything works through child subreapers; see containment.hpp.
/// Thread rules: one thread.
#pragma once

#include "runtime/base/fd.hpp"

#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

namespace tensorplay::agent {

/// One worker's cgroup. Removed with the object if it is empty by then.
class WorkerCgroup {
 public:
  WorkerCgroup(std::string path, base::UniqueFd folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  ~WorkerCgroup();
  WorkerCgroup(const WorkerCgroup&) = delete;
  WorkerCgroup& operator=(const WorkerCgroup&) = delete;

  /// For SpawnRequest::cgroup_fd.
  int fd() const noexcept { return folder_.get(); }

  /// SIGKILL to all in it and below it. False when the kernel cannot (before 5.14).
  bool kill() const;

  /// True when `pid` is in it or below it.
  bool contains(pid_t pid) const;

 private:
  std::string path_;
  base::UniqueFd folder_;
};

/// The folder of one agent's worker cgroups, named after the agent's pid so that its guardian finds it too.
/// Removed with the object if it is empty by then.
class CgroupTree {
 public:
  /// Makes the folder; nullptr when nothing is delegated, or when the kernel cannot kill by cgroup.
  static std::unique_ptr<CgroupTree> make();
  ~CgroupTree();
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  /// nullptr when it cannot be made (a limit on descendants): the worker then lives without.
  std::unique_ptr<WorkerCgroup> make_worker_cgroup(int round, int local_rank);

  /// For a guardian whose agent is dead: kills all that is in the agent's cgroups.
  static void kill_remains_of(pid_t agent);
  /// For a guardian whose agent is dead: removes the agent's empty cgroups.
  static void remove_remains_of(pid_t agent);

 private:
  explicit CgroupTree(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tensorplay::agent
