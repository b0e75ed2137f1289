#include "agent/containment.hpp"

#include "agent/process_tree.hpp"

#include <cerrno>
#include <signal.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/wait.h>

namespace tensorplay::agent {

namespace {

using Clock = std::chrono::steady_clock;

/// Blocks until a child changes state or `until`; false at the deadline.
bool wait_for_child_news(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now());
  if (left.count() <= 0) return false;
  sigset_t child_news;
  sigemptyset(&child_news);
  sigaddset(&child_news, SIGCHLD);
  const timespec timeout{static_cast<time_t>(left.count() / 1'000'000'000),
                         static_cast<long>(left.count() % 1'000'000'000)};
  return sigtimedwait(&child_news, nullptr, &timeout) == SIGCHLD || errno == EINTR;
}

}  // namespace

std::string describe(const Unkillable& process) {
  std::string text = "pid " + std::to_string(process.pid) + " (" + process.name + ")";
  if (process.state == 'D') text += ", in uninterruptible sleep";
  return text + ": " + process.why;
}

void become_subreaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void signal_and_wake(pid_t child, int signal) {
  kill(child, signal);
  const auto stat = read_process_stat(child);
  if (stat && stat->state == 'T') kill(child, SIGCONT);
}

bool reap_ended_children() {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (info.si_pid == 0) return true;
  }
}

void kill_children() {
  for (const pid_t child : children_of(getpid())) kill(child, SIGKILL);
}

std::vector<Unkillable> remaining_children() {
  std::vector<Unkillable> remaining;
  for (const pid_t child : children_of(getpid())) {
    const auto stat = read_process_stat(child);
    if (stat && stat->state != 'Z') remaining.push_back({.pid = child, .name = stat->name, .state = stat->state});
  }
  return remaining;
}

std::vector<Unkillable> end_all_children(std::chrono::milliseconds patience, std::chrono::milliseconds limit) {
  sigset_t child_news;
  sigemptyset(&child_news);
  sigaddset(&child_news, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &child_news, nullptr);  // unblocked and not handled it would be thrown away unseen
  const auto patience_ends = Clock::now() + patience;
  while (reap_ended_children()) {
    if (!wait_for_child_news(patience_ends)) break;
  }
  const auto limit_ends = Clock::now() + limit;
  while (reap_ended_children()) {
    kill_children();
    if (!wait_for_child_news(limit_ends)) return remaining_children();
  }
  return {};
}

}  // namespace tensorplay::agent
