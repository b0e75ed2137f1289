/// One node's supervisor at work: joins the world, runs its workers as it is ordered, and tells what became of them.
/// What to do is decided by AgentCore; this is the shell that listens and acts, all on one loop.
#pragma once

#include "agent/agent_core.hpp"
#include "agent/console.hpp"
#include "agent/guardian.hpp"
#include "agent/launch_plan.hpp"
#include "agent/meeting.hpp"
#include "agent/node_round.hpp"
#include "agent/restart_timeline.hpp"
#include "agent/run_report.hpp"
#include "agent/wait_status.hpp"
#include "agent/worker_group.hpp"
#include "agent/worker_output.hpp"
#include "agent/workers_store.hpp"

#include <asio/io_context.hpp>

#include <optional>

namespace tensorplay::agent {

/// Thread rules: loop thread only; spawns, so it must be the main thread. Everything given must outlive it.
class Agent {
 public:
  Agent(asio::io_context& loop, const LaunchPlan& plan, GuardianLink& link, Meeting& meeting, WorkersStore& store,
        Console& console, WaitStatus& status);

  /// Joins the world and runs the loop until the end. Call once.
  EndAgent run();

  /// All that happened on this node; complete once run() has returned, but for exit code and end.
  RunReport& report() { return report_; }

 private:
  void apply(const AgentEvent& event);
  void perform(const SendReport& action);
  void perform(const SpawnWorkers& action);
  void perform(const StopWorkers& action);
  void perform(const KillWorkers& action);
  void perform(const JoinAnew& action);
  void perform(const EndAgent& action);

  void say_joined(const Meeting::Met& met);
  void read_order(const std::string& text);
  void cut_off(const std::string& why);
  void fail(const std::string& why);
  void on_exit(const WorkerExit& exit);
  void on_gone();
  void close_round();
  void say_unkillable(const std::vector<Unkillable>& left);

  asio::io_context& loop_;
  const LaunchPlan& plan_;
  GuardianLink& link_;
  Meeting& meeting_;
  WorkersStore& store_;
  Console& console_;
  WaitStatus& status_;
  const std::string host_;
  rendezvous::AgentId id_;
  AgentCore core_;
  WorkerOutput output_;
  WorkerGroup group_;
  std::uint64_t seen_epoch_ = 0;  ///< The highest of a store that this agent has joined.
  std::optional<NodeRound> round_;
  std::optional<RestartTimeline> timeline_;  ///< Of the restart that led to this round, or is under way.
  std::optional<std::chrono::steady_clock::time_point> first_end_;
  bool left_unkillable_ = false;
  bool is_forced_ = false;  ///< Somebody wants the end at once: no patience with a console.
  std::optional<EndAgent> end_;
  RunReport report_;
};

}  // namespace tensorplay::agent
