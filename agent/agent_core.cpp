#include "agent/agent_core.hpp"

#include "rendezvous/failure_judgement.hpp"

#include <csignal>
#include <utility>

namespace tensorplay::agent {

using rendezvous::Failed;
using rendezvous::FinishOrder;
using rendezvous::Leaving;
using rendezvous::StartOrder;
using rendezvous::StopOrder;
using rendezvous::Stopped;
using rendezvous::Succeeded;

std::vector<AgentAction> AgentCore::apply(const AgentEvent& event) {
  if (state_ != AgentState::kDone) std::visit([this](const auto& e) { on(e); }, event);
  return std::exchange(actions_, {});
}

void AgentCore::on(const rendezvous::Order& order) {
  std::visit([this](const auto& o) { on(o); }, order);
}

void AgentCore::on(const StartOrder& order) {
  if (state_ != AgentState::kJoining) return;
  round_ = order.round;
  is_idle_ = false;
  state_ = AgentState::kRunning;
  history_.started(order);
  if (order.wants_confirmation) report(rendezvous::Started{id_, order.round});
  act(SpawnWorkers{order});
}

void AgentCore::on(const StopOrder& order) {
  if (order.at_once && order.round == round_ && has_workers()) {
    state_ = AgentState::kStopping;
    return act(KillWorkers{});
  }
  // One that crossed our own report is out of date: we have said stopped, or are about to.
  if (state_ != AgentState::kRunning || order.round != round_) return;
  if (is_idle_) {
    state_ = AgentState::kJoining;
    report(Stopped{id_, round_, {}, false});
  } else {
    stop_workers(SIGTERM, false, order.why);
  }
}

void AgentCore::on(const FinishOrder& order) {
  if (!has_workers()) return end(order);
  finish_ = order;
  if (state_ == AgentState::kRunning) stop_workers(SIGTERM, false, order.why);
}

void AgentCore::on(const rendezvous::NewsOrder&) {}  // for the person: the shell shows it

void AgentCore::on(const rendezvous::ConfirmedOrder& order) {
  history_.confirmed(order.round);
}

void AgentCore::on(const WorkerEnded& ended) {
  if (ended.ended_well || state_ != AgentState::kRunning) return;
  report(Failed{id_, round_, ended.failure});
  stop_workers(SIGTERM, false,
               "rank " + std::to_string(ended.failure.rank) + " " + rendezvous::describe_end(ended.failure));
}

void AgentCore::on(const WorkersGone& gone) {
  if (!has_workers()) return;
  if (guardian_lost_) return end();
  if (stop_signal_ != 0) {
    report(Leaving{id_, rendezvous::signal_name(stop_signal_), true});
    return end();
  }
  if (finish_) return end(finish_);
  if (state_ == AgentState::kRunning) {
    is_idle_ = true;
    report(Succeeded{id_, round_});
    return;
  }
  state_ = AgentState::kJoining;
  report(Stopped{id_, round_, gone.failures, gone.left_unkillable});
}

void AgentCore::on(const StopRequested& request) {
  const bool is_first = stop_signal_ == 0;
  if (is_first) stop_signal_ = request.signal;
  const auto why = rendezvous::signal_name(request.signal);
  if (!has_workers()) {
    report(Leaving{id_, why, true});
    return end();
  }
  if (is_first) report(Leaving{id_, why, false});
  if (request.force) {
    state_ = AgentState::kStopping;
    act(KillWorkers{});
  } else {
    stop_workers(request.signal, request.already_delivered, why);
  }
}

void AgentCore::on(const GuardianLost&) {
  guardian_lost_ = true;
  if (!has_workers()) return end();
  state_ = AgentState::kStopping;
  act(KillWorkers{});
}

void AgentCore::stop_workers(int signal, bool already_delivered, std::string why) {
  state_ = AgentState::kStopping;
  act(StopWorkers{signal, already_delivered, std::move(why)});
}

void AgentCore::end(std::optional<FinishOrder> order) {
  state_ = AgentState::kDone;
  act(EndAgent{stop_signal_, std::move(order)});
}

}  // namespace tensorplay::agent
