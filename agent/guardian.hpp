/// tprun is two processes: the guardian, which is the pid the user sees, and the agent under it. This is the split,
/// and the guardian's half: it waits, passes signals on, carries the exit code, and when the agent dies without
/// a word it ends everything the agent left.
///
/// Both are child subreapers and each watches the other, so SIGKILL of either leaves one to whom every orphan falls.
/// The agent has a session and a name of its own (tp-agent), which keeps `kill -9 %1` and `pkill -9 tprun` from hitting
/// both.
#pragma once

#include <asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// How the agent wants the whole program to end.
struct AgentResult {
  int exit_code = 0;
  int stop_signal = 0;          ///< Non-zero: tprun was stopped by this signal and must end by it.
  bool leaves_daemons = false;  ///< What the workers left behind may stay (--leave-daemons, and all ended well).
};

/// What an agent has agreed with the store's host, where that is another process.
struct AgentLease {
  std::string host;  ///< Where the store is; empty: in the agent itself, so nobody is left to be told.
  std::uint16_t port = 0;
  std::string run_id;
  std::string user;
  std::string agent;
  std::uint64_t token = 0;
  std::uint64_t epoch = 0;
  std::chrono::milliseconds keep_alive{0};
  bool operator==(const AgentLease&) const = default;
};

/// The agent's end of the pair: stop requests and notifications, merged from the guardian, and from signals that
/// reached the agent itself (the same signal at both within a second is one request). Thread rules: loop thread only.
class GuardianLink {
 public:
  struct Callbacks {
    std::function<void(int signal, bool force, bool already_delivered)> on_stop;
    ///< `force`: a second request at least a second after the first. `already_delivered`: slurmstepd sent it, so
    ///< every worker has it as well (WorkerGroup::stop_already_signalled).
    std::function<void(int signal)> on_notify;  ///< For WorkerGroup::notify: SIGUSR1/2 not listed as stop signals, and
                                                ///< SIGTSTP, SIGCONT when tprun is suspended and resumed.
    std::function<void()> on_guardian_lost;     ///< The guardian is dead: kill everything and go.
  };
  virtual ~GuardianLink() = default;
  /// Starts delivering on `loop`. Requests that came before are delivered first. Call once; the link outlives the loop.
  virtual void listen(asio::io_context& loop, Callbacks callbacks) = 0;
  /// The store has taken the agent in: whom the guardian is to tell of its agent's death. Replaces what was held
  /// before.
  virtual void hold(const AgentLease& lease) = 0;
  /// The agent runs. From hold() on it says so several times within its keep-alive; by that the guardian knows a frozen
  /// agent from a live one that was killed.
  virtual void beat() = 0;
  /// Stops delivering, so that the loop can run out of work.
  virtual void close() = 0;
};

struct GuardianOptions {
  std::vector<int> stop_signals;  ///< Those ignored at tprun's entry stay ignored.
  /// Called when the agent has died and nothing of it is left, to tell the store's host. May block for a moment.
  std::function<void(const AgentLease&)> declare_lost = {};
};

/// Splits into guardian and agent. In the agent runs `agent_main`, tells the guardian its result and exits; in the
/// guardian waits, cleans up after the agent, and returns the exit code, or ends by the stop signal.
///
/// An agent that was frozen until its lease was over has been killed by its own timer (Deadman). Then the guardian,
/// when all is cleaned up, starts another, which joins like any newcomer. An agent that was killed while it was alive
/// ends tprun.
///
/// Call with one thread, early: the agent is a fork of what is there. When the process has children already, or is pid
/// 1 of a container, whatever falls to it may be a stranger's; then the guardian proper is a third process between, to
/// which nothing but the agent's tree can fall, and this one only passes signals on.
int run_guarded(const GuardianOptions& options, const std::function<AgentResult(GuardianLink&)>& agent_main);

}  // namespace tensorplay::agent
