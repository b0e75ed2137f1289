#include "rendezvous/membership.hpp"

#include "rendezvous/failure_words.hpp"
#include "rendezvous/seconds_text.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <algorithm>

namespace tensorplay::rendezvous {
namespace {

constexpr std::size_t kMaxReportedFailures = 256;

std::string of(int here, int wanted) {
  return std::to_string(here) + " of " + std::to_string(wanted);
}

}  // namespace

std::chrono::nanoseconds stall_limit(const MembershipOptions& options) {
  return options.lease / 5;
}

std::chrono::nanoseconds settle_time(const MembershipOptions& options) {
  constexpr std::chrono::seconds kReconnect{2};  // a closed connection is a suspicion for so long
  constexpr std::chrono::seconds kOnTheWay{1};   // what was sent may take so long
  return 2 * options.lease + options.kill_time + stall_limit(options) + kReconnect + kOnTheWay;
}

Membership::Membership(MembershipOptions options)
    : options_(std::move(options)), policy_(options_.restarts), epoch_(options_.epoch) {
  if (!options_.can_be_succeeded) return;
  const int nodes = std::max(options_.max_nodes, static_cast<int>(options_.expected_hosts.size()));
  lineage_.emplace(nodes, settle_time(options_));
}

Effects Membership::apply(const Event& event, TimePoint now) {
  Effects effects;
  effects_ = &effects;
  // Nobody has heard of us while we stood still, and who left in that time is not known to have left.
  if (lineage_ && now_ != TimePoint{} && now - now_ > stall_limit(options_)) lineage_->doubt_all(now);
  now_ = now;
  if (phase_ == Phase::kForming && !join_deadline_) begin_forming();
  if (phase_ != Phase::kSteppedDown) std::visit([this](const auto& e) { on(e); }, event);
  send_news(false);
  effects_ = nullptr;
  return effects;
}

std::optional<TimePoint> Membership::next_tick() const {
  std::optional<TimePoint> tick;
  const auto at = [&tick](TimePoint when) { tick = tick ? std::min(*tick, when) : when; };
  if (phase_ == Phase::kForming) {
    if (close_at_) {
      at(std::max(*close_at_, start_not_before()));
    } else if (join_deadline_) {
      at(*join_deadline_);
    }
  }
  if (news_sent_at_ && (is_status_stale_ || !lines_.empty())) at(*news_sent_at_ + kNewsInterval);
  // It has to notice when it stood still.
  if (lineage_ && phase_ < Phase::kFinished && now_ != TimePoint{}) at(now_ + stall_limit(options_) / 2);
  return tick;
}

Standing Membership::standing() const {
  return {epoch_, round_, phase_ != Phase::kSteppedDown && has_quorum()};
}

// ---- Events -------------------------------------------------------------------------------------------------------

void Membership::on(const Joined& joined) {
  if (const auto* known = find(joined.agent)) {
    // It lost its connection and says it again. What a member said counts until its round is over.
    if (known->part == Part::kWaiting) find(joined.agent)->info = joined;
    return;
  }
  if (!replaces_an_earlier_one(joined)) return;
  auto& node = nodes_[joined.agent];
  node.info = joined;
  node.arrival = arrivals_++;
  if (phase_ == Phase::kFinished) {
    effects_->orders.push_back({{joined.agent}, *end_});
    return;
  }
  ++waiting_;
  const auto& host = joined.host;
  welcome(joined);
  switch (phase_) {
    case Phase::kForming:
      status_changed();
      consider_close();
      break;
    case Phase::kRunning: {
      const auto size = static_cast<int>(members_.size());
      std::string why;
      if (size >= options_.max_nodes) {
        why = "the world is full (" + of(size, options_.max_nodes) + ")";
      } else if (unfinished_ < size) {
        why = "workers have begun to end well, the world does not grow any more";
      } else {
        why = host + " joined: the world has room for it (" + of(size, options_.max_nodes) + " nodes)";
        tell_all(why);
        begin_stop(why);
        membership_changed_ = true;
        break;
      }
      note(host + " waits: " + why);
      effects_->orders.push_back({{joined.agent}, NewsOrder{"waiting: " + why, true, false, 0, 0}});
      break;
    }
    default:
      break;
  }
}

/// What it knows of earlier worlds.
void Membership::welcome(const Joined& joined) {
  seen_epoch_ = std::max(seen_epoch_, joined.seen_epoch);
  for (const auto& past : joined.past) {
    seen_epoch_ = std::max(seen_epoch_, past.epoch);
    seen_round_ = std::max(seen_round_, past.round);
    policy_.adopt(past.restart_count, past.recent_restarts, past.fruitless_restarts, now_);
  }
  if (lineage_) {
    lineage_->join(joined, now_);
    stop_unless_quorum(joined.host + " tells of a later world");
  } else if (round_ < 0 && joined.seen_epoch > 0) {
    // A leader was here before, and has died: those who have not found us yet stop at the end of their leases.
    not_before_ = std::max(not_before_, now_ + options_.lease + options_.kill_time);
  }
}

/// One process, one member: who joins anew has given up what it ran under its old name. False for what is out of date.
bool Membership::replaces_an_earlier_one(const Joined& joined) {
  auto& name = sessions_[process_of(joined.agent)];
  const auto old = std::exchange(name, joined.agent);
  if (old.empty()) return true;
  if (session_of(old) > session_of(joined.agent)) {
    name = old;
    return false;
  }
  if (old != joined.agent && find(old) != nullptr)
    remove(old, joined.host + " had lost its connection and joined anew", false);
  return true;
}

void Membership::on(const Started& started) {
  if (!lineage_ || find_member(started.agent, started.round) == nullptr || !lineage_->confirm(started.agent)) return;
  AddressedOrder confirmed{{}, ConfirmedOrder{round_}};
  for (const auto& agent : members_) {
    if (find(agent) != nullptr) confirmed.agents.push_back(agent);
  }
  effects_->orders.push_back(std::move(confirmed));
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
    remove(leaving.agent, what, true);
    return;
  }
  if (node->part != Part::kRunning || node->is_leaving) return;
  node->is_leaving = true;
  membership_changed_ = true;
  tell_all(what);
  if (phase_ == Phase::kRunning) begin_stop(what);
}

void Membership::on(const Lost& lost) {
  auto* node = find(lost.agent);
  if (node == nullptr) return;
  not_before_ = std::max(not_before_, lost.workers_gone_at);
  const auto what = node->info.host + " was lost: " + lost.why;
  remove(lost.agent, what, lost.is_certain);
  stop_unless_quorum(what);
}

void Membership::on(const Succession& succession) {
  const auto why = succession.by +
                   " leads the job now: " + (options_.place.empty() ? std::string("this host") : options_.place) +
                   " steps down";
  if (phase_ == Phase::kRunning) {
    begin_stop(why, true);
  } else if (phase_ == Phase::kStopping) {
    stop_at_once(why);
  }
  tell_all(why);
  send_news(true);
  phase_ = Phase::kSteppedDown;
}

void Membership::on(const Tick&) {
  if (phase_ == Phase::kForming) consider_close();
}

void Membership::remove(const AgentId& agent, const std::string& what, bool for_good) {
  const auto where = nodes_.find(agent);
  const auto part = where->second.part;
  const bool was_leaving = where->second.is_leaving;
  const auto process = process_of(agent);
  if (for_good && sessions_[process] == agent) sessions_.erase(process);
  if (lineage_) lineage_->leave(agent, for_good);
  if (phase_ == Phase::kFinished) {
    nodes_.erase(where);
    return;
  }
  if (part == Part::kWaiting) {
    note(what);
    --waiting_;
    nodes_.erase(where);
    status_changed();
    if (phase_ == Phase::kForming) consider_close();
    return;
  }
  where->second.is_leaving = true;                              // no order goes to it
  if (phase_ == Phase::kRunning && part == Part::kSucceeded) {  // its part is done, and nobody waits for it
    note(what);
    nodes_.erase(where);
    return;
  }
  if (!was_leaving) tell_all(what);
  if (phase_ == Phase::kRunning) begin_stop(what);
  membership_changed_ = true;
  nodes_.erase(agent);
  if (--unstopped_ == 0) settle();
}

// ---- Stopping -----------------------------------------------------------------------------------------------------

void Membership::begin_stop(const std::string& why, bool at_once) {
  phase_ = Phase::kStopping;
  ran_ += now_ - started_at_;
  is_stopping_at_once_ = at_once || !has_quorum();
  unstopped_ = 0;
  AddressedOrder stop{{}, StopOrder{round_, why + lack_of_quorum(), is_stopping_at_once_}};
  for (const auto& agent : members_) {
    auto* node = find(agent);
    if (node == nullptr || node->part == Part::kWaiting) continue;
    node->part = Part::kRunning;  // one that had succeeded has to answer like all
    ++unstopped_;
    if (!node->is_leaving) stop.agents.push_back(agent);
  }
  if (!stop.agents.empty()) effects_->orders.push_back(std::move(stop));
}

/// Those who lead others may begin a world of their own: whatever still runs here, and may take its time, must be gone.
void Membership::stop_at_once(const std::string& why) {
  if (std::exchange(is_stopping_at_once_, true)) return;
  AddressedOrder stop{{}, StopOrder{round_, why, true}};
  for (const auto& agent : members_) {
    const auto* node = find(agent);
    if (node != nullptr && (node->part != Part::kWaiting || phase_ == Phase::kFinished)) stop.agents.push_back(agent);
  }
  if (!stop.agents.empty()) effects_->orders.push_back(std::move(stop));
}

void Membership::stop_unless_quorum(const std::string& why) {
  if (has_quorum()) return;
  if (phase_ == Phase::kRunning) {
    tell_all(why + lack_of_quorum());
    begin_stop(why);
  } else if (phase_ == Phase::kStopping || phase_ == Phase::kFinished) {
    stop_at_once(why + lack_of_quorum());
  }
}

void Membership::member_done(Node& node) {
  if (node.is_leaving) return;  // it counts until its second report says that its workers are gone
  node.part = Part::kWaiting;
  ++waiting_;
  if (--unstopped_ == 0) settle();
}

void Membership::settle() {
  is_stopping_at_once_ = false;
  // Without a quorum it is not ours to judge: what failed may have failed because we are cut off.
  if (!has_quorum() && unkillable_on_.empty()) return begin_forming(), consider_close();
  std::vector<WorkerFailure> failures;
  for (auto& [rank, failure] : failures_) failures.push_back(std::move(failure));
  auto verdict = judge(std::move(failures));
  // Where a node was lost its peers' workers fail with it, often before anybody has noticed: no failure of the world.
  const bool is_failure = verdict.root_cause && (verdict.is_own || !membership_changed_);
  if (!is_failure) {
    if (unkillable_on_.empty()) return begin_forming(), consider_close();
    return finish(distributed::exit_code::kInternalError, "a process on " + unkillable_on_ + " cannot be killed",
                  verdict);
  }
  const auto& cause = *verdict.root_cause;
  const auto what = describe_failure(cause, members_.size() > 1);
  if (cause.is_startup_failure) {
    return finish(exit_code_of(cause), what + "; a program that cannot be started is not restarted", verdict);
  }
  if (!unkillable_on_.empty()) {
    return finish(exit_code_of(cause), what + ": not restarted, a process on " + unkillable_on_ + " cannot be killed",
                  verdict);
  }
  const auto answer = policy_.ask(now_, std::exchange(ran_, std::chrono::nanoseconds(0)));
  const auto& rules = policy_.rules();
  if (answer == RestartAnswer::kRestart) {
    const auto count =
        rules.window ? std::to_string(policy_.spent()) + ", " + std::to_string(policy_.left(now_)) + " left for now"
                     : of(policy_.spent(), rules.max_restarts);
    tell_all(what + ": restarting all workers (restart " + count + ")");
    begin_forming();
    consider_close();
  } else if (answer == RestartAnswer::kNoProgress) {
    finish(distributed::exit_code::kNoProgress,
           what + ": no progress: " + std::to_string(policy_.fruitless()) + " restarts in a row failed within " +
               seconds_text(rules.progress_after),
           verdict);
  } else {
    finish(exit_code_of(cause),
           rules.max_restarts == 0 ? what : what + ": no restart is left of " + std::to_string(rules.max_restarts),
           verdict);
  }
}

void Membership::finish(int exit_code, const std::string& why, Verdict verdict) {
  send_news(true);
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

// ---- Look-ups -----------------------------------------------------------------------------------------------------

Membership::Node* Membership::find(const AgentId& agent) {
  const auto where = nodes_.find(agent);
  return where == nodes_.end() ? nullptr : &where->second;
}

Membership::Node* Membership::find_member(const AgentId& agent, int round) {
  return round == round_ && (phase_ == Phase::kRunning || phase_ == Phase::kStopping) ? find(agent) : nullptr;
}

}  // namespace tensorplay::rendezvous
