// What people are told. Lines and the state of the wait go to the agents, each of which shows them to its own people;
// what only the leader's log needs is a note.
#include "rendezvous/membership.hpp"
#include "rendezvous/seconds_text.hpp"

#include <algorithm>

namespace tensorplay::rendezvous {
namespace {

constexpr std::size_t kMaxNames = 8;
constexpr std::size_t kMaxLines = 8;  // at once; who loses a thousand nodes in a second reads no thousand lines

double in_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string listed(std::vector<std::string> names) {
  std::string text;
  const std::size_t shown = names.size() <= kMaxNames + 1 ? names.size() : kMaxNames;
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : " ") + names[i];
  if (shown < names.size()) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

/// "n1" and "n1.cluster" are one host: schedulers and hosts do not agree on how much of a name they say.
std::string first_label(const std::string& host) {
  const bool is_address = host.find(':') != host.npos || host.find_first_not_of("0123456789.") == host.npos;
  return is_address ? host : host.substr(0, host.find('.'));
}

}  // namespace

void Membership::tell_all(std::string line) {
  if (lines_.size() < kMaxLines) {
    lines_.push_back(std::move(line));
  } else {
    ++more_lines_;
  }
}

void Membership::send_news(bool at_once) {
  if (lines_.empty() && !is_status_stale_) return;
  const bool is_due = nodes_.size() <= kFewNodes || !news_sent_at_ || now_ >= *news_sent_at_ + kNewsInterval;
  if (!is_due && !at_once) return;
  news_sent_at_ = now_;
  std::vector<AgentId> everybody;
  if (!lines_.empty()) {
    for (const auto& [agent, node] : nodes_) {
      if (!node.is_leaving) everybody.push_back(agent);
    }
    std::sort(everybody.begin(), everybody.end());
  }
  if (more_lines_ > 0) lines_.push_back("and " + std::to_string(more_lines_) + " more of these");
  for (auto& line : lines_) {
    if (!everybody.empty()) effects_->orders.push_back({everybody, NewsOrder{std::move(line), false, true, 0, 0}});
  }
  lines_.clear();
  more_lines_ = 0;
  if (at_once) return;  // the wait is over
  if (std::exchange(is_status_stale_, false) && phase_ == Phase::kForming) send_status();
}

void Membership::send_status() {
  auto text = status_text();
  if (text == status_sent_) return;
  AddressedOrder status{
      {}, NewsOrder{text, true, false, in_seconds(now_ - forming_since_), in_seconds(options_.join_timeout)}};
  if (close_at_) {
    auto& news = std::get<NewsOrder>(status.order);
    news.waited_seconds = in_seconds(now_ - call_began_);
    news.limit_seconds = in_seconds(std::max(*close_at_, start_not_before()) - call_began_);
  }
  for (const auto& [agent, node] : nodes_) {
    if (node.part == Part::kWaiting) status.agents.push_back(agent);
  }
  std::sort(status.agents.begin(), status.agents.end());
  if (status.agents.empty()) return;
  status_sent_ = std::move(text);
  effects_->orders.push_back(std::move(status));
}

std::string Membership::status_text() const {
  const auto here = [this](int wanted) {
    return std::to_string(waiting_) + " of " + std::to_string(wanted) + " nodes are here" + names_of_waiting();
  };
  const auto missing = names_of_missing();
  if (waiting_ < options_.min_nodes) return here(options_.min_nodes) + (missing.empty() ? "" : ", " + missing);
  const int wanted = std::max(this->wanted(), waiting_);
  if (!has_quorum()) return here(wanted) + lack_of_quorum() + (missing.empty() ? "" : "; " + missing);
  if (now_ < *close_at_) {
    return here(wanted) + ", enough to begin: " + (missing.empty() ? "waiting for more" : missing);
  }
  return here(wanted) + ": beginning when the workers of those who are missing are gone for certain";
}

std::string Membership::deadline_text() const {
  auto text = "waited " + seconds_text(options_.join_timeout);
  if (!options_.place.empty()) text += " at " + options_.place;
  const int wanted = waiting_ < options_.min_nodes ? options_.min_nodes : std::max(this->wanted(), waiting_);
  text += ": " + std::to_string(waiting_) + " of " + std::to_string(wanted) + " nodes are here" + names_of_waiting();
  if (waiting_ >= options_.min_nodes) text += lack_of_quorum();
  if (auto missing = names_of_missing(); !missing.empty()) {
    constexpr std::string_view kWaiting = "waiting for ";
    if (missing.starts_with(kWaiting)) {
      missing = missing.substr(kWaiting.size()) + (is_first_round() ? " never came" : " did not come back");
    }
    text += "; " + missing;
  }
  return text;
}

/// ", 2 of 5 nodes of the last world, and it takes 3: ..." Empty with a quorum.
std::string Membership::lack_of_quorum() const {
  if (has_quorum()) return {};
  const auto count = lineage_->count();
  const auto of_what = is_first_round() ? " nodes that may come" : " nodes of the last world";
  return ": " + std::to_string(count.here) + " of the " + std::to_string(count.size) + of_what + ", and it takes " +
         std::to_string(count.needed) + ", for the others may meet elsewhere";
}

/// " (n1 n2)", in natural order; empty when there is nobody.
std::string Membership::names_of_waiting() const {
  std::vector<std::string> hosts;
  for (const auto& [agent, node] : nodes_) {
    if (node.part == Part::kWaiting) hosts.push_back(node.info.host);
  }
  if (hosts.empty()) return {};
  const auto less = [](const auto& a, const auto& b) { return natural_less(a, b); };
  const auto shown = std::min(hosts.size(), kMaxNames + 1);
  std::partial_sort(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(shown), hosts.end(), less);
  return " (" + listed(std::move(hosts)) + ")";
}

/// "waiting for n3 n4", "node ranks 2 3 are missing"; empty where nobody knows who should come.
std::string Membership::names_of_missing() const {
  const std::size_t nodes = options_.expected_hosts.empty() && options_.expects_node_ranks
                                ? static_cast<std::size_t>(options_.max_nodes)
                                : options_.expected_hosts.size();
  if (nodes == 0) return {};
  std::vector<bool> is_here(nodes, false);
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < options_.expected_hosts.size(); ++i) {
    by_name.emplace(first_label(options_.expected_hosts[i]), i);
  }
  for (const auto& [agent, node] : nodes_) {
    const auto& info = node.info;
    if (const auto found = by_name.find(first_label(info.host)); found != by_name.end()) {
      is_here[found->second] = true;
    } else if (info.rank_hint && *info.rank_hint >= 0 && static_cast<std::size_t>(*info.rank_hint) < nodes) {
      is_here[static_cast<std::size_t>(*info.rank_hint)] = true;
    } else {
      for (const auto& address : info.addresses) {
        if (const auto by_address = by_name.find(first_label(address)); by_address != by_name.end()) {
          is_here[by_address->second] = true;
        }
      }
    }
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < nodes; ++i) {
    if (!is_here[i]) missing.push_back(by_name.empty() ? std::to_string(i) : options_.expected_hosts[i]);
  }
  if (missing.empty()) return {};
  const bool is_one = missing.size() == 1;
  auto names = listed(std::move(missing));
  if (!by_name.empty()) return "waiting for " + names;
  return is_one ? "node rank " + names + " is missing" : "node ranks " + names + " are missing";
}

}  // namespace tensorplay::rendezvous
