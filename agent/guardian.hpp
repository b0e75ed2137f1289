/// tprun is two processes: the guardian, which is the pid the user sees, and the agent under it. This is the split,
/// and the guardian's half: it waits, passes signals on, carries the exit code, and when the agent dies without
/// a word it ends everything the agent left.
#pragma once

#include <asio/io_context.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace tensorplay::agent {

/// How the agent wants the whole program to end.
struct AgentResult {
  int exit_code = 0;
  int stop_signal = 0;  ///< Non-zero: tprun was stopped by this signal and must end by it.
};

/// The agent's end of the pair: stop requests and notifications, merged from the guardian, and from signals that
/// reached the agent itself (the same signal at both within a second is one request). Thread rules: loop thread only.
class GuardianLink {
 public:
  struct Callbacks {
    std::function<void(int signal, bool force, bool already_delivered)> on_stop;
    ///< `force`: a second request at least a second after the first. `already_delivered`: slurmstepd sent it, so
    ///< every worker has it as well.
    std::function<void(int signal)> on_notify;  ///< SIGUSR1/2 not listed as stop signals.
    std::function<void()> on_guardian_lost;     ///< The guardian is dead: kill everything and go.
  };
  virtual ~GuardianLink() = default;
  /// Starts delivering on `loop`. Requests that came before are delivered first.
  virtual void listen(asio::io_context& loop, Callbacks callbacks) = 0;
};

struct GuardianOptions {
  std::vector<int> stop_signals;
};

/// Splits into guardian and agent. In the agent runs `agent_main` and tells the guardian its result; in the guardian
/// waits, cleans up after the agent, and returns the exit code, or ends by the stop signal. Call with one thread.
int run_guarded(const GuardianOptions& options, const std::function<AgentResult(GuardianLink&)>& agent_main);

}  // namespace tensorplay::agent
