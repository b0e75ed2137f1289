// When a round begins, and with whom.
#include "rendezvous/membership.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <algorithm>

namespace tensorplay::rendezvous {

void Membership::begin_forming() {
  phase_ = Phase::kForming;
  failures_.clear();
  membership_changed_ = false;
  close_at_.reset();
  forming_since_ = now_;
  join_deadline_ = now_ + options_.join_timeout;
  status_sent_.clear();
  status_changed();
}

int Membership::last_size() const {
  return lineage_ ? std::max(lineage_->newest().round < 0 ? 0 : lineage_->newest().group_world_size, 0)
                  : static_cast<int>(members_.size());
}

int Membership::wanted() const {
  return is_first_round() ? options_.max_nodes : std::clamp(last_size(), options_.min_nodes, options_.max_nodes);
}

/// The workers of those who were lost are gone by then, and whoever led those who are here before has missed them.
TimePoint Membership::start_not_before() const {
  return lineage_ && lineage_->has_quorum() ? std::max(not_before_, lineage_->ready_at()) : not_before_;
}

void Membership::consider_close() {
  if (waiting_ < options_.min_nodes || !has_quorum()) {
    close_at_.reset();
    if (now_ >= *join_deadline_) finish(distributed::exit_code::kRendezvousFailed, deadline_text());
    return;
  }
  if (!close_at_) {
    call_began_ = now_;
    close_at_ = std::min(now_ + (is_first_round() ? options_.last_call : options_.replacement_wait), *join_deadline_);
  }
  if (waiting_ >= wanted()) close_at_ = std::min(*close_at_, now_);
  if (now_ >= *close_at_ && now_ >= start_not_before()) start_round();
}

void Membership::start_round() {
  std::vector<Candidate> candidates;
  candidates.reserve(nodes_.size());
  for (const auto& [agent, node] : nodes_) {
    if (node.part != Part::kWaiting) continue;
    candidates.push_back({&node.info, lineage_ ? lineage_->position(agent) : node.previous_position, node.arrival});
  }
  auto roster = choose_members(std::move(candidates), options_.max_nodes);
  if (!roster.ignored_hints.empty()) tell_all(roster.ignored_hints);
  send_news(true);
  phase_ = Phase::kRunning;
  round_ = std::max(round_, seen_round_) + 1;
  // No two leaders name a world alike: who has been under another one brings its epoch with it.
  if (seen_epoch_ >= epoch_) epoch_ = seen_epoch_ + 1;
  auto orders = make_start_orders(roster.members, round_, policy_.spent(), static_cast<std::uint64_t>(round_));
  members_.clear();
  effects_->orders.reserve(effects_->orders.size() + orders.size());
  const int recent = policy_.recent(now_);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const auto& agent = roster.members[i].node->agent;
    auto& node = nodes_.at(agent);
    node.part = Part::kRunning;
    node.previous_position = static_cast<int>(i);
    members_.push_back(agent);
    auto& order = orders[i];
    order.epoch = epoch_;
    order.recent_restarts = recent;
    order.fruitless_restarts = policy_.fruitless();
    order.wants_confirmation = lineage_.has_value();
    effects_->orders.push_back({{agent}, std::move(order)});
  }
  if (lineage_) lineage_->start(epoch_, round_, members_);
  for (const auto& spare : roster.spares) {
    nodes_.at(spare.node->agent).previous_position = -1;
    const auto why =
        "the world is full (" + std::to_string(members_.size()) + " of " + std::to_string(options_.max_nodes) + ")";
    note(spare.node->host + " waits: " + why);
    effects_->orders.push_back({{spare.node->agent}, NewsOrder{"waiting: " + why, true, false, 0, 0}});
  }
  waiting_ = static_cast<int>(roster.spares.size());
  unfinished_ = static_cast<int>(members_.size());
  started_at_ = now_;
  join_deadline_.reset();
  close_at_.reset();
  not_before_ = {};
  is_status_stale_ = false;
}

}  // namespace tensorplay::rendezvous
