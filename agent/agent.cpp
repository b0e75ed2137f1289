#include "agent/agent.hpp"

#include "agent/open_file_limit.hpp"
#include "agent/travelling_addresses.hpp"
#include "agent/uninterruptible_watch.hpp"
#include "rendezvous/failure_judgement.hpp"
#include "runtime/base/host.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <asio/post.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <unistd.h>

namespace tensorplay::agent {
namespace {

using rendezvous::AgentId;

/// How long the streams of dead workers may stay open in the hands of a daemon that was left.
constexpr std::chrono::milliseconds kDrainLimit{2'000};

AgentId make_agent_id(const std::string& host) {
  char random[20];
  std::snprintf(random, sizeof random, "%08x", std::random_device{}());
  return host + "_" + std::to_string(::getpid()) + "_" + random;
}

/// Failures of all hosts are compared by the clock of one.
void set_clock(rendezvous::WorkerFailure& failure, double offset) {
  failure.ended_at += offset;
  if (failure.thrown_at) *failure.thrown_at += offset;
}

void set_clock(rendezvous::Report& report, double offset) {
  if (offset == 0) return;
  if (auto* failed = std::get_if<rendezvous::Failed>(&report)) set_clock(failed->failure, offset);
  if (auto* stopped = std::get_if<rendezvous::Stopped>(&report)) {
    for (auto& failure : stopped->failures) set_clock(failure, offset);
  }
}

}  // namespace

Agent::Agent(asio::io_context& loop, const LaunchPlan& plan, GuardianLink& link, Meeting& meeting, WorkersStore& store,
             Console& console, WaitStatus& status)
    : loop_(loop),
      plan_(plan),
      link_(link),
      meeting_(meeting),
      store_(store),
      console_(console),
      status_(status),
      host_(base::short_host_name()),
      id_(make_agent_id(host_)),
      core_(id_),
      output_(loop, plan, console),
      group_(loop,
             {.leave_daemons = plan.leave_daemons, .uninterruptible_limit = uninterruptible_limit_from_environment()},
             {.on_exit = [this](const WorkerExit& exit) { on_exit(exit); },
              .on_gone = [this] { on_gone(); },
              .on_unkillable = [this](const std::vector<Unkillable>& left) { say_unkillable(left); }}) {
  report_.run_id = plan.rdzv.run_id;
  report_.program = plan.program.display_name;
  report_.host = host_;
  report_.max_restarts = plan.max_restarts;
  report_.started_at = unix_now();
}

EndAgent Agent::run() {
  // Stop requests first: one that came before us keeps the first worker from being started.
  link_.listen(loop_, {.on_stop =
                           [this](int signal, bool force, bool already_delivered) {
                             apply(StopRequested{signal, force, already_delivered});
                           },
                       .on_notify = [this](int signal) { group_.notify(signal); },
                       .on_guardian_lost = [this] { apply(GuardianLost{}); }});
  meeting_.listen({.on_met = [this](const Meeting::Met& met) { say_joined(met); },
                   .on_order = [this](const std::string& text) { read_order(text); },
                   .on_cut_off = [this](const std::string& why) { cut_off(why); },
                   .on_failed = [this](const std::string& why) { fail(why); }});
  asio::post(loop_, [this] {
    if (core_.state() == AgentState::kJoining) meeting_.join(id_);  // unless it was stopped before it began
  });
  loop_.run();
  status_.clear();
  report_.log_folder = output_.run_folder();
  report_.ended_at = unix_now();
  if (!report_.attempts.empty()) {
    for (const auto& failure : report_.attempts.back().failures) {
      if (output_.is_in_sight(failure.local_rank)) report_.ranks_in_sight.push_back(failure.rank);
    }
  }
  if (!end_) throw std::logic_error("the agent's loop ran out of work");
  return *end_;
}

void Agent::say_joined(const Meeting::Met& met) {
  if (core_.state() != AgentState::kJoining) return;
  rendezvous::Joined joined;
  joined.agent = id_;
  joined.host = host_;
  if (plan_.max_nodes == 1) {
    joined.addresses = {plan_.master_addr};
  } else {
    joined.addresses = addresses_for_others(plan_.local_addr, met.local_address, base::interface_addresses());
  }
  joined.nproc = plan_.nproc_per_node;
  joined.role = plan_.role;
  const bool is_static = plan_.rdzv.backend == "static" && plan_.max_nodes > 1;  // each node has one, 0 unless given
  if (plan_.node_rank_given || is_static) joined.rank_hint = plan_.node_rank;
  joined.is_store_host = met.is_store_host;
  joined.port = store_.port();
  joined.past = core_.past_worlds();
  joined.seen_epoch = seen_epoch_;
  seen_epoch_ = std::max(seen_epoch_, met.epoch);
  perform(SendReport{joined});
}

void Agent::read_order(const std::string& text) {
  const auto order = rendezvous::decode_order(text);
  if (const auto* news = std::get_if<rendezvous::NewsOrder>(&order)) return status_.show(*news);
  status_.clear();
  apply(order);
}

void Agent::cut_off(const std::string& why) {
  status_.clear();
  console_.say(why + (group_.has_live_workers() ? "; killing the workers and joining anew" : "; joining anew"));
  apply(CutOff{why});
}

/// Nobody could tell us a last word, so it is our own.
void Agent::fail(const std::string& why) {
  status_.clear();
  rendezvous::FinishOrder order;
  order.exit_code = distributed::exit_code::kRendezvousFailed;
  order.why = why;
  apply(rendezvous::Order(std::move(order)));
}

void Agent::apply(const AgentEvent& event) {
  for (const auto& action : core_.apply(event)) std::visit([this](const auto& a) { perform(a); }, action);
}

// ---- Actions --------------------------------------------------------------------------------------------------------

void Agent::perform(const SendReport& action) {
  // Before the leader hears of it: workers of a new round may come as soon as it lets any node start.
  if (std::holds_alternative<rendezvous::Stopped>(action.report)) store_.begin_round();
  auto report = action.report;
  set_clock(report, meeting_.clock_offset());
  meeting_.post(report);
}

void Agent::perform(const SpawnWorkers& action) {
  auto order = action.order;
  if (plan_.rdzv.backend == "static" && plan_.max_nodes > 1) {
    order.master_addr = plan_.master_addr;
    order.master_port = plan_.master_port;
  }
  if (order.serves_workers_store) store_.serve(order.member_addresses);
  const auto ordered = std::chrono::steady_clock::now();
  first_end_.reset();
  round_.emplace(plan_, order, output_, host_);
  std::optional<WorkerEnded> failure;
  try {
    group_.start(round_->prepare());
    round_->started(group_.pids());
  } catch (const StartupFailure& e) {
    const auto running = group_.pids();
    failure = round_->not_started(static_cast<int>(running.size()), with_open_file_limit(e.what()), e.exit_code());
    round_->started(running);
  } catch (const distributed::DistError& e) {
    // No worker was begun: nothing will be reported gone.
    failure = round_->not_started(0, with_open_file_limit(e.what()), distributed::exit_code::kInternalError);
    round_->started({});
    asio::post(loop_, [this] { on_gone(); });
  }
  if (timeline_) {
    timeline_->ordered = ordered;
    timeline_->spawned = std::chrono::steady_clock::now();
    console_.say(Chatter::kInfo,
                 "restart " + std::to_string(order.restart_count) + ": " + describe(times_of(*timeline_)));
  }
  if (failure) apply(*failure);
}

void Agent::perform(const StopWorkers& action) {
  console_.say(Chatter::kInfo, "stopping the workers: " + action.why);
  if (action.already_delivered) {
    group_.stop_already_signalled(action.signal, plan_.shutdown_timeout);
  } else {
    group_.stop(action.signal, plan_.shutdown_timeout);
  }
}

void Agent::perform(const KillWorkers& action) {
  console_.say(Chatter::kInfo, "killing the workers: " + action.why);
  is_forced_ = true;
  group_.kill_now();
}

void Agent::perform(const JoinAnew&) {
  // Nothing that knew the old name may take what it is told now for an answer to it.
  id_ = rendezvous::next_session(id_);
  core_.rename(id_);
  store_.begin_round();
  meeting_.join(id_);
}

void Agent::perform(const EndAgent& action) {
  end_ = action;
  report_.finish = action.order;
  report_.stop_signal = action.stop_signal;
  link_.close();
  meeting_.leave(action.order.has_value() && action.stop_signal == 0, [this] { loop_.stop(); });
}

// ---- What the workers do --------------------------------------------------------------------------------------------

void Agent::on_exit(const WorkerExit& exit) {
  auto ended = round_->ended(exit);
  if (!ended.ended_well && !first_end_) first_end_ = exit.ended_at;
  apply(std::move(ended));
}

void Agent::on_gone() {
  const auto gone_at = std::chrono::steady_clock::now();
  round_->record().ended_at = unix_now();
  output_.drain(is_forced_ ? kDrainLimit / 10 : kDrainLimit, [this, gone_at] {
    WorkersGone gone{round_->complete_failures(), left_unkillable_};
    close_round();
    timeline_ = RestartTimeline{};
    timeline_->stopped = gone_at;
    timeline_->detected = first_end_.value_or(gone_at);
    apply(std::move(gone));
  });
}

void Agent::close_round() {
  auto& record = round_->record();
  if (timeline_) record.restart = times_of(*timeline_, store_.first_use());
  if (core_.stop_signal() != 0) {
    record.ended_because = "stopped by " + rendezvous::signal_name(core_.stop_signal());
  } else if (core_.state() == AgentState::kRunning) {
    record.ended_because = "succeeded";
  } else {
    record.ended_because = record.failures.empty() ? "stopped" : "failed";
  }
  report_.attempts.push_back(record);
}

void Agent::say_unkillable(const std::vector<Unkillable>& left) {
  left_unkillable_ = true;
  for (const auto& process : left) console_.say(describe(process));
}

}  // namespace tensorplay::agent
