#include "runtime/backend/gloo/sigpipe_guard.hpp"

#include <ctime>
#include <pthread.h>

namespace tensorplay::distributed {
namespace {

sigset_t sigpipe_alone() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool is_pending() noexcept {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

SigpipeGuard::SigpipeGuard() noexcept {
  const sigset_t alone = sigpipe_alone();
  pthread_sigmask(SIG_BLOCK, &alone, &before_);
  was_pending_ = is_pending();
}

SigpipeGuard::~SigpipeGuard() {
  if (!was_pending_ && is_pending()) {
    const sigset_t alone = sigpipe_alone();
    const timespec at_once{};
    sigtimedwait(&alone, nullptr, &at_once);  // Takes away what our own writes raised.
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace tensorplay::distributed
