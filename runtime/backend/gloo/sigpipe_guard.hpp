#pragma once

#include <csignal>

namespace tensorplay::distributed {

/// Keeps SIGPIPE from this thread while it lives: Gloo writes to sockets in a way that raises it when the peer is gone,
/// and a peer's death must be an exception, not the end of the process. The program's own disposition is left alone.
/// A thread that is started under a guard never gets SIGPIPE. Thread rules: one thread; may be nested.
class SigpipeGuard {
 public:
  SigpipeGuard() noexcept;
  ~SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace tensorplay::distributed
