#pragma once

#include "runtime/base/fd.hpp"
#include "tensorplay/multiprocessing.hpp"

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tensorplay::multiprocessing {

/// Starts child processes and reaps them, in a thread of its own.
///
/// The thread is the children's parent in the eyes of the kernel (a parent-death signal means the death of the thread
/// that made the child), so it lives until the last child is reaped.
/// Thread rules: every method may be called from any thread.
class Children {
 public:
  struct Child {
    int pid = -1;
    base::UniqueFd pidfd;
    base::UniqueFd error_file;
    bool has_ended = false;
    int end_order = 0;  ///< 1 for the first to end.
    int status = 0;     ///< As waitid has it: exit code, or -N for signal N.
    bool is_joined = false;
  };

  /// Starts one child; in the thread. Returns its pid. Throws what makes it impossible.
  using Start = std::function<int(int index, int error_fd)>;

  /// Starts all of them, or none: those that were started are killed when a later one cannot be.
  Children(int count, Start start);
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  std::vector<int> pids() const;
  bool join(std::optional<std::chrono::milliseconds> timeout, std::optional<std::chrono::milliseconds> grace_period);

 private:
  using Clock = std::chrono::steady_clock;

  void run(int count, const Start& start);
  void reap(Child& child);
  void end_the_rest(std::unique_lock<std::mutex>& lock, std::optional<std::chrono::milliseconds> grace_period);
  void signal_alive(int signal, const char* what);
  bool all_ended() const;
  [[noreturn]] static void report(const Child& child, int index);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Child> children_;
  int ended_ = 0;
  bool is_started_ = false;
  std::exception_ptr failure_;
  std::thread keeper_;
};

}  // namespace tensorplay::multiprocessing
