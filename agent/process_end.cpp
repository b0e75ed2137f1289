#include "agent/process_end.hpp"

#include "tensorplay/distributed/exit_codes.hpp"

#include <signal.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/resource.h>

namespace tensorplay::agent {

namespace {

/// Lets `signal` have its default effect on this process, now.
void take_default_effect(int signal) {
  sigset_t only;
  sigset_t before;
  sigemptyset(&only);
  sigaddset(&only, signal);
  raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &only, &before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

int end_by_signal(int signal) {
  const int code = distributed::exit_code::kSignalBase + signal;
  if (getpid() == 1) return code;
  // Both, since a core_pattern that pipes does not ask for the limit.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  take_default_effect(signal);
  return code;
}

void stop_by_terminal() {
  take_default_effect(SIGTSTP);
}

}  // namespace tensorplay::agent
