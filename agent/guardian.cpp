#include "agent/guardian.hpp"

#include "agent/agent_link.hpp"
#include "agent/containment.hpp"
#include "agent/entry_state.hpp"
#include "agent/guardian_relay.hpp"
#include "agent/guardian_wire.hpp"
#include "agent/log_folder.hpp"
#include "agent/open_file_limit.hpp"
#include "agent/process_end.hpp"
#include "agent/process_title.hpp"
#include "agent/signal_intake.hpp"
#include "agent/worker_cgroup.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

namespace tensorplay::agent {

namespace {

namespace exit_code = distributed::exit_code;
using namespace std::chrono_literals;

constexpr const char* kAgentName = "tp-agent";
/// What the helpers of workers that died with their agent get to clean up.
constexpr auto kHelperGrace = 500ms;
constexpr auto kKillLimit = 30s;
/// After an orderly end there is nothing left, or what the agent has already given up on.
constexpr auto kOrderlyLimit = 2s;
constexpr auto kAgentExitLimit = 5s;

struct Signals {
  std::set<int> stops;
  std::set<int> notifications;

  std::set<int> all() const {
    std::set<int> signals{SIGCHLD, SIGTSTP, SIGCONT};
    signals.insert(stops.begin(), stops.end());
    signals.insert(notifications.begin(), notifications.end());
    return signals;
  }
};

Signals choose_signals(const GuardianOptions& options) {
  Signals signals;
  signals.stops = without_ignored(options.stop_signals);
  for (const int signal : without_ignored({SIGUSR1, SIGUSR2})) {
    if (signals.stops.count(signal) == 0) signals.notifications.insert(signal);
  }
  return signals;
}

int say_and_fail(const char* what) {
  std::fprintf(stderr, "tprun: %s: %s\n", what, with_open_file_limit(std::strerror(errno)).c_str());
  return exit_code::kInternalError;
}

/// The guardian's half, after the fork.
class Guardian {
 public:
  Guardian(pid_t agent, base::UniqueFd socket, const Signals& signals, const GuardianOptions& options)
      : agent_(agent), socket_(std::move(socket)), stops_(signals.stops), intake_(signals.all()), options_(options) {}

  /// The exit code; nullopt when a new agent is to be started.
  std::optional<int> run() {
    while (!agent_end_) {
      pollfd news[2] = {{intake_.fd(), POLLIN, 0}, {result_ || peer_closed_ ? -1 : socket_.get(), POLLIN, 0}};
      const int ready =
          poll(news, 2, result_ ? static_cast<int>(std::chrono::milliseconds(kAgentExitLimit).count()) : -1);
      if (ready == 0) kill(agent_, SIGKILL);  // it has said its last word and does not go
      if (news[1].revents != 0) read_messages();
      take_signals();
    }
    read_messages();  // its last word may have come together with its end
    if (result_) return end_orderly();
    const bool was_frozen = has_been_frozen();
    clean_up(was_frozen);
    if (!was_frozen) return exit_code::kInternalError;
    if (stop_signal_ != 0) return end_by_signal(stop_signal_);
    return std::nullopt;
  }

 private:
  void take_signals() {
    while (const auto received = intake_.take()) {
      switch (received->signal) {
        case SIGCHLD:
          reap();
          break;
        case SIGTSTP:
          suspend(*received);
          break;
        case SIGCONT:
          resume();
          break;
        default:
          if (stops_.contains(received->signal) && stop_signal_ == 0) stop_signal_ = received->signal;
          pass_on(*received);
          kill(agent_, SIGCONT);  // a stopped agent could not act on it
      }
    }
  }

  void pass_on(const ReceivedSignal& received) const {
    const SignalMessage message{received.signal, received.from_step_daemon ? 1 : 0};
    send(socket_.get(), &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  /// Ctrl-Z: the agent freezes the workers and itself goes on, so that the other nodes hear from it.
  void suspend(const ReceivedSignal& received) {
    suspended_ = true;
    pass_on(received);
    stop_by_terminal();
    // Where the stop had no effect (nobody could ever continue us), there will be no SIGCONT.
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGCONT) == 0) resume();
  }

  void resume() {
    if (!std::exchange(suspended_, false)) return;
    pass_on({SIGCONT, false});
  }

  void read_messages() {
    std::string bytes(kMaxAgentMessage, '\0');
    while (!peer_closed_) {
      const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) return;
      // An agent that ends with a signal of ours unread resets the connection, and the kernel tells that, once, before
      // it hands out what was still sent.
      if (got < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
      const auto message = decode_agent_message({bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
      if (!message) {
        peer_closed_ = true;
      } else if (const auto* result = std::get_if<AgentResult>(&*message)) {
        result_ = *result;
      } else if (const auto* lease = std::get_if<AgentLease>(&*message)) {
        lease_ = *lease;
      } else {
        last_beat_ = Clock::now();
      }
    }
  }

  /// Its own timer killed it: it had not been heard for most of its keep-alive, where a live one speaks three times.
  bool has_been_frozen() const {
    return lease_ && agent_end_->si_code == CLD_KILLED && agent_end_->si_status == SIGKILL &&
           Clock::now() - last_beat_ > lease_->keep_alive / 2;
  }

  void reap() {
    for (;;) {
      siginfo_t info{};
      if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0) {
        if (errno == EINTR) continue;
        return;
      }
      if (info.si_pid == 0) return;
      if (info.si_pid == agent_) agent_end_ = info;
    }
  }

  int end_orderly() const {
    if (!result_->leaves_daemons) end_all_children(0ms, kOrderlyLimit);
    return result_->stop_signal != 0 ? end_by_signal(result_->stop_signal) : result_->exit_code;
  }

  void clean_up(bool was_frozen) const {
    const bool killed = agent_end_->si_code != CLD_EXITED;
    const char* name = killed ? sigabbrev_np(agent_end_->si_status) : nullptr;
    const std::string how = killed ? "was killed by SIG" + std::string(name != nullptr ? name : "???")
                                   : "exited with code " + std::to_string(agent_end_->si_status);
    if (was_frozen) {
      std::fprintf(stderr, "tprun: its agent (pid %d) was frozen until its lease was over; ending all workers%s\n",
                   agent_, stop_signal_ == 0 ? ", starting a new agent" : "");
    } else {
      std::fprintf(stderr, "tprun: its agent (pid %d) %s without a word; ending all workers\n", agent_, how.c_str());
    }
    // With their agent the workers have got SIGKILL; the cgroups catch what forks faster than it can be killed.
    std::vector<Unkillable> left = end_all_children(kHelperGrace, 0ms);
    if (!left.empty()) {
      CgroupTree::kill_remains_of(agent_);
      left = end_all_children(0ms, kKillLimit);
    }
    CgroupTree::remove_remains_of(agent_);
    ErrorFolder::remove_chosen();
    for (const Unkillable& process : left) {
      std::fprintf(stderr, "tprun: %s\n", describe(process).c_str());
    }
    if (lease_ && !lease_->host.empty() && left.empty() && options_.declare_lost) options_.declare_lost(*lease_);
  }

  using Clock = std::chrono::steady_clock;

  const pid_t agent_;
  const base::UniqueFd socket_;
  const std::set<int> stops_;
  const SignalIntake intake_;
  const GuardianOptions& options_;
  std::optional<AgentLease> lease_;
  Clock::time_point last_beat_{};
  int stop_signal_ = 0;  ///< The first that came.
  std::optional<AgentResult> result_;
  std::optional<siginfo_t> agent_end_;
  bool peer_closed_ = false;
  bool suspended_ = false;
};

/// The agent's half, after the fork.
[[noreturn]] void run_agent(base::UniqueFd socket, const Signals& signals, pid_t guardian,
                            const std::function<AgentResult(GuardianLink&)>& agent_main) {
  setsid();
  // Should the guardian die while we are stopped, this wakes us to clean up.
  prctl(PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0);
  set_process_title(kAgentName);
  become_subreaper();
  raise_open_file_limit();
  AgentResult result{exit_code::kInternalError, 0, false};
  if (getppid() == guardian) {
    AgentLink link(std::move(socket), signals.stops, signals.notifications);
    try {
      result = agent_main(link);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "tprun: internal error: %s\n", with_open_file_limit(error.what()).c_str());
    }
    link.close();
    if (!result.leaves_daemons) end_all_children(0ms, kOrderlyLimit);
    std::fflush(nullptr);
    link.send_result(result);
  }
  std::exit(result.exit_code);
}

}  // namespace

int run_guarded(const GuardianOptions& options, const std::function<AgentResult(GuardianLink&)>& agent_main) {
  entry_state();
  const Signals signals = choose_signals(options);
  block_signals(signals.all());
  std::fflush(nullptr);  // or both halves would write what is buffered

  if (strangers_may_fall_to_us()) {
    const pid_t relay = getpid();
    const pid_t guardian = fork();
    if (guardian < 0) return say_and_fail("cannot fork");
    if (guardian > 0) return relay_to_guardian(guardian, signals.all());
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != relay) return exit_code::kInternalError;
  }

  become_subreaper();
  become_worse_oom_victim();
  own_cgroups();  // read before the fork; see process_title.hpp for why it is not the agent that opens it
  const pid_t guardian = getpid();
  for (;;) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
      return say_and_fail("cannot make a socket pair");
    base::UniqueFd ours(sockets[0]);
    base::UniqueFd theirs(sockets[1]);
    ErrorFolder::choose_name();
    const pid_t agent = fork();
    if (agent < 0) return say_and_fail("cannot fork");
    if (agent == 0) {
      ours.reset();
      run_agent(std::move(theirs), signals, guardian, agent_main);
    }
    theirs.reset();
    if (const auto code = Guardian(agent, std::move(ours), signals, options).run()) return *code;
  }
}

}  // namespace tensorplay::agent
