#include "agent/signal_intake.hpp"

#include "agent/entry_state.hpp"
#include "agent/process_tree.hpp"

#include <cerrno>
#include <system_error>

#include <sys/signalfd.h>

namespace tensorplay::agent {

namespace {

sigset_t to_sigset(const std::set<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

bool is_step_daemon(pid_t sender) {
  if (sender <= 0) return false;
  const auto stat = read_process_stat(sender);
  return stat && stat->name == "slurmstepd";
}

}  // namespace

std::set<int> without_ignored(const std::vector<int>& wanted) {
  std::set<int> kept;
  for (const int signal : wanted) {
    if (signal > 0 && signal < 65 && !entry_state().ignored_signals.test(static_cast<std::size_t>(signal)))
      kept.insert(signal);
  }
  return kept;
}

void block_signals(const std::set<int>& signals) {
  const sigset_t set = to_sigset(signals);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

SignalIntake::SignalIntake(const std::set<int>& signals) {
  const sigset_t set = to_sigset(signals);
  fd_.reset(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd_) throw std::system_error(errno, std::generic_category(), "signalfd");
}

std::optional<ReceivedSignal> SignalIntake::take() const {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  const bool sent_by_process = info.ssi_code <= 0;
  const bool is_child_news = info.ssi_signo == SIGCHLD;
  return ReceivedSignal{static_cast<int>(info.ssi_signo),
                        sent_by_process && !is_child_news && is_step_daemon(static_cast<pid_t>(info.ssi_pid))};
}

}  // namespace tensorplay::agent
