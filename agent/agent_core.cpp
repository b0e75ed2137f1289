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
  if (order.round != round_) return;
  if (order.at_once && has_workers()) return kill_workers(order.why);
  // One that crossed our own report is out of date: we have said stopped, or are about to.
  if (state_ != AgentState::kRunning) return;
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
  if (guardian_lost_) return leave("its guardian was killed");
  if (stop_signal_ != 0) return leave(rendezvous::signal_name(stop_signal_));
  if (finish_) return end(finish_);
  if (std::exchange(is_cut_off_, false)) {
    state_ = AgentState::kJoining;
    return act(JoinAnew{});
  }
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
  if (!has_workers()) return leave(why);
  if (is_first) report(Leaving{id_, why, false});
  if (request.force) {
    kill_workers(why);
  } else {
    stop_workers(request.signal, request.already_delivered, why);
  }
}

void AgentCore::on(const GuardianLost&) {
  guardian_lost_ = true;
  if (!has_workers()) return leave("its guardian was killed");
  kill_workers("the guardian was killed");
}

void AgentCore::on(const CutOff& cut_off) {
  if (has_workers()) {
    is_cut_off_ = true;
    return kill_workers(cut_off.why);
  }
  state_ = AgentState::kJoining;
  act(JoinAnew{});
}

void AgentCore::kill_workers(std::string why) {
  state_ = AgentState::kStopping;
  act(KillWorkers{std::move(why)});
}

void AgentCore::leave(const std::string& why) {
  report(Leaving{id_, why, true});
  end();
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
