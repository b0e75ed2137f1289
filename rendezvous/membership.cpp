#include "rendezvous/membership.hpp"

#include "tensorplay/distributed/exit_codes.hpp"

#include <algorithm>

namespace tensorplay::rendezvous {
namespace {

constexpr std::size_t kMaxReportedFailures = 256;
constexpr std::size_t kMaxNames = 8;
constexpr int kMaxNamedNodes = 64;  // beyond that a list of hosts tells nobody anything, and costs O(nodes) a join

std::string seconds(std::chrono::nanoseconds time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  auto text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text.append(".").append(std::to_string(tenths % 10));
  return text + " s";
}

std::string of(int here, int wanted) {
  return std::to_string(here) + " of " + std::to_string(wanted);
}

}  // namespace

Membership::Membership(MembershipOptions options)
    : options_(options), policy_(options.max_restarts, options.restart_window) {}

Effects Membership::apply(const Event& event, TimePoint now) {
  Effects effects;
  effects_ = &effects;
  now_ = now;
  if (phase_ == Phase::kForming && !join_deadline_) join_deadline_ = now + options_.join_timeout;
  std::visit([this](const auto& e) { on(e); }, event);
  effects_ = nullptr;
  return effects;
}

std::optional<TimePoint> Membership::next_tick() const {
  if (phase_ != Phase::kForming) return std::nullopt;
  if (!close_at_) return join_deadline_;
  return std::max(*close_at_, not_before_);
}

// ---- Events -------------------------------------------------------------------------------------------------------

void Membership::on(const Joined& joined) {
  if (phase_ == Phase::kFinished) {
    nodes_.emplace(joined.agent, Node{.info = joined});
    effects_->orders.push_back({{joined.agent}, *end_});
    return;
  }
  const auto [where, is_new] = nodes_.try_emplace(joined.agent);
  auto& node = where->second;
  if (!is_new) {
    // It lost its connection and says it again. What a member said counts until its round is over.
    if (node.part == Part::kWaiting) node.info = joined;
    return;
  }
  node.info = joined;
  node.arrival = arrivals_++;
  ++waiting_;
  const auto& host = joined.host;
  switch (phase_) {
    case Phase::kForming:
      consider_close();
      break;
    case Phase::kRunning: {
      const auto size = static_cast<int>(members_.size());
      if (size >= options_.max_nodes) {
        note(host + " waits: the world is full (" + of(size, options_.max_nodes) + ")");
      } else if (unfinished_ < size) {
        note(host + " waits: workers have begun to end well, the world does not grow any more");
      } else {
        begin_stop(host + " joined: the world has room for it (" + of(size, options_.max_nodes) + " nodes)");
        membership_changed_ = true;
      }
      break;
    }
    default:
      break;
  }
}

void Membership::on(const Failed& failed) {
  auto* node = find_member(failed.agent, failed.round);
  if (node == nullptr || node->part == Part::kWaiting) return;
  failures_[failed.failure.rank] = failed.failure;
  if (phase_ == Phase::kRunning) {
    begin_stop("rank " + std::to_string(failed.failure.rank) + " on " + node->info.host + " " +
               describe_end(failed.failure));
  }
}

void Membership::on(const Started&) {}  // nobody was asked: no start order wants it yet

void Membership::on(const Stopped& stopped) {
  auto* node = find_member(stopped.agent, stopped.round);
  if (node == nullptr || node->part == Part::kWaiting) return;
  if (phase_ == Phase::kRunning) begin_stop("the workers on " + node->info.host + " have ended");
  for (const auto& failure : stopped.failures) failures_[failure.rank] = failure;
  if (stopped.left_unkillable) unkillable_on_ = node->info.host;
  member_done(*node);
}

void Membership::on(const Succeeded& succeeded) {
  auto* node = find_member(succeeded.agent, succeeded.round);
  if (node == nullptr || node->part != Part::kRunning) return;
  // In a stopping round `stopped` follows; that its workers ended well before the stop reached them changes nothing.
  if (phase_ != Phase::kRunning) return;
  node->part = Part::kSucceeded;
  if (--unfinished_ == 0) finish(distributed::exit_code::kSuccess, "all workers ended well");
}

void Membership::on(const Leaving& leaving) {
  auto* node = find(leaving.agent);
  if (node == nullptr) return;
  const auto what = node->info.host + " left: " + leaving.why;
  if (leaving.workers_gone) {
    remove(leaving.agent, what);
    return;
  }
  if (node->part != Part::kRunning || node->is_leaving) return;
  node->is_leaving = true;
  membership_changed_ = true;
  if (phase_ == Phase::kRunning) begin_stop(what);
}

void Membership::on(const Lost& lost) {
  auto* node = find(lost.agent);
  if (node == nullptr) return;
  not_before_ = std::max(not_before_, lost.workers_gone_at);
  remove(lost.agent, node->info.host + " was lost: " + lost.why);
}

void Membership::on(const Tick&) {
  if (phase_ == Phase::kForming) consider_close();
}

void Membership::remove(const AgentId& agent, const std::string& what) {
  const auto where = nodes_.find(agent);
  const auto part = where->second.part;
  const bool was_leaving = where->second.is_leaving;
  if (phase_ == Phase::kFinished) {
    nodes_.erase(where);
    return;
  }
  if (!was_leaving) note(what, part == Part::kRunning);
  if (part == Part::kWaiting) {
    --waiting_;
    nodes_.erase(where);
    if (phase_ == Phase::kForming) consider_close();
    return;
  }
  if (phase_ == Phase::kRunning) {
    if (part == Part::kSucceeded) {  // its part is done, and nobody waits for it
      nodes_.erase(where);
      return;
    }
    where->second.is_leaving = true;  // no order goes to it
    begin_stop(what);
  }
  membership_changed_ = true;
  nodes_.erase(agent);
  if (--unstopped_ == 0) settle();
}

// ---- Forming ------------------------------------------------------------------------------------------------------

void Membership::consider_close() {
  const int wanted = round_ < 0 ? options_.max_nodes
                                : std::clamp(static_cast<int>(members_.size()), options_.min_nodes, options_.max_nodes);
  if (waiting_ >= wanted) {
    close_at_ = now_;
  } else if (waiting_ >= options_.min_nodes) {
    const auto wait = round_ < 0 ? options_.last_call : options_.replacement_wait;
    if (!close_at_) close_at_ = std::min(now_ + wait, *join_deadline_);
    if (now_ < *close_at_) {
      note_status(waiting_, of(waiting_, wanted) + " nodes are here" + names_of_waiting() +
                                ", enough to begin: waiting " + seconds(*close_at_ - now_) + " for more");
    }
  } else {
    close_at_.reset();
    if (now_ >= *join_deadline_) {
      finish(distributed::exit_code::kRendezvousFailed, "waited " + seconds(options_.join_timeout) + ": " +
                                                            of(waiting_, options_.min_nodes) + " nodes are here" +
                                                            names_of_waiting());
      return;
    }
    note_status(waiting_, of(waiting_, options_.min_nodes) + " nodes are here" + names_of_waiting());
  }
  if (close_at_ && now_ >= std::max(*close_at_, not_before_)) start_round();
}

void Membership::start_round() {
  std::vector<Candidate> candidates;
  candidates.reserve(nodes_.size());
  for (const auto& [agent, node] : nodes_) {
    if (node.part == Part::kWaiting) candidates.push_back({&node.info, node.previous_position, node.arrival});
  }
  auto roster = choose_members(std::move(candidates), options_.max_nodes);
  if (!roster.ignored_hints.empty()) note(roster.ignored_hints, true);
  phase_ = Phase::kRunning;
  ++round_;
  auto orders = make_start_orders(roster.members, round_, policy_.spent(), static_cast<std::uint64_t>(round_));
  members_.clear();
  effects_->orders.reserve(orders.size());
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const auto& agent = roster.members[i].node->agent;
    auto& node = nodes_.at(agent);
    node.part = Part::kRunning;
    node.previous_position = static_cast<int>(i);
    members_.push_back(agent);
    effects_->orders.push_back({{agent}, std::move(orders[i])});
  }
  for (const auto& spare : roster.spares) {
    nodes_.at(spare.node->agent).previous_position = -1;
    note(spare.node->host + " waits: the world is full (" + of(static_cast<int>(members_.size()), options_.max_nodes) +
         ")");
  }
  waiting_ = static_cast<int>(roster.spares.size());
  unfinished_ = static_cast<int>(members_.size());
  join_deadline_.reset();
  close_at_.reset();
  not_before_ = {};
  nodes_noted_ = -1;
}

void Membership::form_again() {
  phase_ = Phase::kForming;
  failures_.clear();
  membership_changed_ = false;
  join_deadline_ = now_ + options_.join_timeout;
  consider_close();
}

// ---- Stopping -----------------------------------------------------------------------------------------------------

void Membership::begin_stop(const std::string& why) {
  phase_ = Phase::kStopping;
  unstopped_ = 0;
  AddressedOrder stop{{}, StopOrder{round_, why}};
  for (const auto& agent : members_) {
    auto* node = find(agent);
    if (node == nullptr || node->part == Part::kWaiting) continue;
    node->part = Part::kRunning;  // one that had succeeded has to answer like all
    ++unstopped_;
    if (!node->is_leaving) stop.agents.push_back(agent);
  }
  if (!stop.agents.empty()) effects_->orders.push_back(std::move(stop));
}

void Membership::member_done(Node& node) {
  if (node.is_leaving) return;  // it counts until its second report says that its workers are gone
  node.part = Part::kWaiting;
  ++waiting_;
  if (--unstopped_ == 0) settle();
}

void Membership::settle() {
  std::vector<WorkerFailure> failures;
  for (auto& [rank, failure] : failures_) failures.push_back(std::move(failure));
  auto verdict = judge(std::move(failures));
  // Where a node was lost its peers' workers fail with it, often before anybody has noticed: no failure of the world.
  const bool is_failure = verdict.root_cause && (verdict.is_own || !membership_changed_);
  if (!is_failure) {
    if (unkillable_on_.empty()) return form_again();
    return finish(distributed::exit_code::kInternalError, "a process on " + unkillable_on_ + " cannot be killed",
                  verdict);
  }
  const auto& cause = *verdict.root_cause;
  const auto what = "rank " + std::to_string(cause.rank) + " on " + cause.host + " " + describe_end(cause);
  if (cause.is_startup_failure) {
    finish(exit_code_of(cause), what + ": a program that cannot be started is not restarted", verdict);
  } else if (!unkillable_on_.empty()) {
    finish(exit_code_of(cause), what + ": not restarted, a process on " + unkillable_on_ + " cannot be killed",
           verdict);
  } else if (policy_.try_spend(now_)) {
    const auto count = options_.restart_window ? std::to_string(policy_.spent()) + ", " +
                                                     std::to_string(policy_.left(now_)) + " left for now"
                                               : of(policy_.spent(), policy_.max_restarts());
    note(what + ": restarting all workers (restart " + count + ")", true);
    form_again();
  } else {
    finish(
        exit_code_of(cause),
        policy_.max_restarts() == 0 ? what : what + ": no restart is left of " + std::to_string(policy_.max_restarts()),
        verdict);
  }
}

void Membership::finish(int exit_code, const std::string& why, Verdict verdict) {
  phase_ = Phase::kFinished;
  FinishOrder order;
  order.exit_code = exit_code;
  order.why = why;
  order.root_cause = std::move(verdict.root_cause);
  order.failures = std::move(verdict.failures);
  if (order.failures.size() > kMaxReportedFailures) {
    order.more_failures = static_cast<int>(order.failures.size() - kMaxReportedFailures);
    order.failures.resize(kMaxReportedFailures);
  }
  order.round = std::max(round_, 0);
  order.restart_count = policy_.spent();
  end_ = std::move(order);
  AddressedOrder to_all{{}, *end_};
  for (const auto& [agent, node] : nodes_) to_all.agents.push_back(agent);
  std::sort(to_all.agents.begin(), to_all.agents.end());
  if (!to_all.agents.empty()) effects_->orders.push_back(std::move(to_all));
}

// ---- Words --------------------------------------------------------------------------------------------------------

void Membership::note(std::string text, bool is_notable) {
  effects_->notes.push_back({std::move(text), is_notable});
}

void Membership::note_status(int nodes_here, std::string text) {
  if (nodes_here == nodes_noted_) return;
  nodes_noted_ = nodes_here;
  note(std::move(text));
}

Membership::Node* Membership::find(const AgentId& agent) {
  const auto where = nodes_.find(agent);
  return where == nodes_.end() ? nullptr : &where->second;
}

Membership::Node* Membership::find_member(const AgentId& agent, int round) {
  return round == round_ && (phase_ == Phase::kRunning || phase_ == Phase::kStopping) ? find(agent) : nullptr;
}

/// " (n1 n2)", in natural order; empty when there is nobody or too many.
std::string Membership::names_of_waiting() const {
  if (waiting_ == 0 || waiting_ > kMaxNamedNodes) return {};
  std::vector<const std::string*> hosts;
  for (const auto& [agent, node] : nodes_) {
    if (node.part == Part::kWaiting) hosts.push_back(&node.info.host);
  }
  const auto shown = std::min<std::size_t>(hosts.size(), kMaxNames);
  std::partial_sort(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(shown), hosts.end(),
                    [](const auto* a, const auto* b) { return natural_less(*a, *b); });
  std::string names = " (";
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) names += ' ';
    names += *hosts[i];
  }
  names += shown < hosts.size() ? " ...)" : ")";
  return names;
}

}  // namespace tensorplay::rendezvous
