/// The agent as a table of states and events: what one node's supervisor does about orders, ends of workers and stop
/// requests. No processes, sockets or clocks: the shell around it (agent.cpp) performs what it answers.
///
///   state      event                                what it does                                      next
///   joining    start                                spawn the workers                                 running
///              finish                               end                                               done
///              stop request                         say leaving                                       done
///   running    a worker failed, or never started    say failed; stop the others                       stopping
///              none left, all ended well            say succeeded                                     running (idle)
///              stop                                 stop the workers (kill them, when at once)        stopping
///              stop, when idle                      say stopped                                       joining
///              stop request                         say leaving (still stopping); stop the workers    stopping
///   stopping   none left                            say stopped (or leaving, when a stop was asked)   joining / done
///              force, or stop at once               kill the workers                                  stopping
///   any        cut off                              kill the workers; once none is left: join anew    joining
///              guardian lost                        kill the workers; once none is left: say leaving  done
#pragma once

#include "rendezvous/messages.hpp"
#include "rendezvous/world_history.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tensorplay::agent {

enum class AgentState { kJoining, kRunning, kStopping, kDone };

// ---- Events ---------------------------------------------------------------------------------------------------------

/// One worker has ended, or could not be started.
struct WorkerEnded {
  bool ended_well = true;
  rendezvous::WorkerFailure failure;  ///< When it did not.
};

/// No process of the round is left, and what they wrote is written.
struct WorkersGone {
  std::vector<rendezvous::WorkerFailure> failures;  ///< Of the round, complete.
  bool left_unkillable = false;
};

struct StopRequested {
  int signal = 0;
  bool force = false;
  bool already_delivered = false;  ///< The workers have had the signal from somebody else.
};

struct GuardianLost {};

/// The store, or the leader behind it, takes this agent for gone, or may do so: what it was part of goes on without it.
struct CutOff {
  std::string why;
};

using AgentEvent = std::variant<rendezvous::Order, WorkerEnded, WorkersGone, StopRequested, GuardianLost, CutOff>;

// ---- Actions --------------------------------------------------------------------------------------------------------

struct SendReport {
  rendezvous::Report report;
};

struct SpawnWorkers {
  rendezvous::StartOrder order;
};

struct StopWorkers {
  int signal = 0;
  bool already_delivered = false;
  std::string why;
};

struct KillWorkers {
  std::string why;
};

/// Look for the world again, as an agent that nobody knows.
struct JoinAnew {};

/// How it all ends. Without `order` the leader had no last word: the agent was stopped, or its guardian died.
struct EndAgent {
  int stop_signal = 0;  ///< Non-zero: tprun ends by this signal, whatever else is said.
  std::optional<rendezvous::FinishOrder> order;
};

using AgentAction = std::variant<SendReport, SpawnWorkers, StopWorkers, KillWorkers, JoinAnew, EndAgent>;

// ---- The core -------------------------------------------------------------------------------------------------------

/// Thread rules: one thread at a time.
class AgentCore {
 public:
  explicit AgentCore(rendezvous::AgentId id) : id_(std::move(id)) {}

  /// Applies one event; returns what to do, in order.
  std::vector<AgentAction> apply(const AgentEvent& event);

  /// From here on it is another agent: called for JoinAnew, before it joins.
  void rename(rendezvous::AgentId id) { id_ = std::move(id); }

  AgentState state() const { return state_; }
  int round() const { return round_; }  ///< Of the last start; -1 before.
  int stop_signal() const { return stop_signal_; }
  /// For Joined::past.
  const std::vector<rendezvous::PastWorld>& past_worlds() const { return history_.worlds(); }

 private:
  void on(const rendezvous::Order& order);
  void on(const rendezvous::StartOrder& order);
  void on(const rendezvous::StopOrder& order);
  void on(const rendezvous::FinishOrder& order);
  void on(const rendezvous::NewsOrder& news);
  void on(const rendezvous::ConfirmedOrder& order);
  void on(const WorkerEnded& ended);
  void on(const WorkersGone& gone);
  void on(const StopRequested& request);
  void on(const GuardianLost& lost);
  void on(const CutOff& cut_off);

  void act(AgentAction action) { actions_.push_back(std::move(action)); }
  void report(rendezvous::Report report) { act(SendReport{std::move(report)}); }
  void stop_workers(int signal, bool already_delivered, std::string why);
  void kill_workers(std::string why);
  void leave(const std::string& why);
  void end(std::optional<rendezvous::FinishOrder> order = std::nullopt);
  bool has_workers() const { return state_ == AgentState::kStopping || (state_ == AgentState::kRunning && !is_idle_); }

  rendezvous::AgentId id_;
  AgentState state_ = AgentState::kJoining;
  int round_ = -1;
  bool is_idle_ = false;  ///< Running, and all workers have ended well.
  int stop_signal_ = 0;   ///< A stop was asked for: the agent leaves when its workers are gone.
  bool guardian_lost_ = false;
  bool is_cut_off_ = false;                        ///< Joins anew when its workers are gone.
  std::optional<rendezvous::FinishOrder> finish_;  ///< Came while workers lived.
  rendezvous::WorldHistory history_;
  std::vector<AgentAction> actions_;
};

}  // namespace tensorplay::agent
