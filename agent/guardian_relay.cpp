#include "agent/guardian_relay.hpp"

#include "agent/process_end.hpp"
#include "agent/process_tree.hpp"
#include "agent/signal_intake.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <cerrno>
#include <cstdio>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include <sys/wait.h>

namespace tensorplay::agent {

namespace {

/// Reaps what has ended; the guardian's end when it was among it.
std::optional<siginfo_t> reap_until_guardian(pid_t guardian) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0) {
      if (errno == EINTR) continue;
      return std::nullopt;
    }
    if (info.si_pid == 0) return std::nullopt;
    if (info.si_pid == guardian) return info;
  }
}

}  // namespace

bool strangers_may_fall_to_us() {
  return getpid() == 1 || has_children();
}

int relay_to_guardian(pid_t guardian, const std::set<int>& signals) {
  const SignalIntake intake(signals);
  for (;;) {
    pollfd news{intake.fd(), POLLIN, 0};
    poll(&news, 1, -1);
    while (const auto received = intake.take()) {
      if (received->signal == SIGCHLD) {
        const auto end = reap_until_guardian(guardian);
        if (!end) continue;
        if (end->si_code == CLD_EXITED) return end->si_status;
        if (end->si_status != SIGKILL) return end_by_signal(end->si_status);
        std::fprintf(stderr, "tprun: its guardian (pid %d) was killed; the agent ends all workers\n", guardian);
        return distributed::exit_code::kInternalError;
      }
      kill(guardian, received->signal);
      if (received->signal == SIGTSTP) stop_by_terminal();
    }
  }
}

}  // namespace tensorplay::agent
