#include "rendezvous/discovery/host_choice.hpp"

#include <algorithm>

namespace tensorplay::rendezvous {

namespace {

using Kind = Choice::Kind;

/// What holds the endpoint for good: a list goes on behind it.
bool is_final(Answer answer) {
  return answer == Answer::kForeign || answer == Answer::kStranger || answer == Answer::kRefused;
}

Choice fail(std::size_t index, const EndpointView& endpoint) {
  return {Kind::kFail, index, 0, false, endpoint.name + " " + endpoint.finding.reason};
}

Choice wait_until(std::optional<milliseconds> when) {
  Choice choice;
  choice.look_again_at = when;
  return choice;
}

/// The endpoints in the order in which they may host.
std::vector<std::size_t> hosting_order(const SearchView& view) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < view.endpoints.size(); ++i) order.push_back(i);
  if (view.lost) std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(*view.lost) + 1, order.end());
  return order;
}

bool others_have_answered(const SearchView& view, std::size_t besides) {
  for (std::size_t i = 0; i < view.endpoints.size(); ++i) {
    if (i != besides && view.endpoints[i].finding.answer == Answer::kPending) return false;
  }
  return true;
}

/// The newest store that may be joined; of two equal ones the first in order.
std::optional<std::size_t> newest_store(const SearchView& view, const std::vector<std::size_t>& order) {
  std::optional<std::size_t> newest;
  for (const std::size_t i : order) {
    if (!is_joinable(view, view.endpoints[i])) continue;
    if (!newest || view.endpoints[i].finding.epoch > view.endpoints[*newest].finding.epoch) newest = i;
  }
  return newest;
}

/// Where waiting is over because of what holds the endpoints.
std::optional<Choice> failure(const SearchView& view, const std::vector<std::size_t>& order) {
  std::size_t final_ones = 0;
  for (const std::size_t i : order) {
    const auto& endpoint = view.endpoints[i];
    if (!is_final(endpoint.finding.answer)) continue;
    ++final_ones;
    // The job's own store with another secret: nothing that others do will help.
    if (endpoint.finding.answer == Answer::kRefused) return fail(i, endpoint);
  }
  if (final_ones == order.size()) return fail(order[0], view.endpoints[order[0]]);
  return std::nullopt;
}

/// Whether this agent is the one to host an address that is nobody's.
bool hosts_for_nobody(const SearchView& view) {
  return view.node_index ? *view.node_index == 0 : view.is_host.value_or(false);
}

Choice host(const SearchView& view, const std::vector<std::size_t>& order, std::size_t place) {
  // Each place that was passed over may yet turn out to live: its epoch must then be the older one.
  return {Kind::kHost, order[place], view.last_epoch + 1 + place, view.last_epoch > 0 || place > 0, ""};
}

}  // namespace

bool is_joinable(const SearchView& view, const EndpointView& endpoint) {
  return endpoint.finding.answer == Answer::kStore &&
         endpoint.finding.epoch >= std::max<std::uint64_t>(view.last_epoch, 1);
}

Choice choose_static(const SearchView& view) {
  const auto& endpoint = view.endpoints[0];
  if (is_final(endpoint.finding.answer)) return fail(0, endpoint);
  if (view.is_host.value_or(false)) {
    if (!endpoint.is_port_taken) return {Kind::kHost, 0, view.last_epoch + 1, view.last_epoch > 0, ""};
    if (endpoint.finding.answer == Answer::kStore) {
      return {Kind::kFail, 0, 0, false,
              "another agent of this run hosts " + endpoint.name +
                  " already: two agents have node rank 0; give each node its own --node-rank"};
    }
    return wait_until(std::nullopt);
  }
  if (is_joinable(view, endpoint)) return {Kind::kJoin, 0, endpoint.finding.epoch, false, ""};
  return wait_until(std::nullopt);
}

Choice choose_endpoint(const SearchView& view) {
  const auto order = hosting_order(view);
  if (const auto newest = newest_store(view, order)) {
    const auto known_for = view.joinable_for.value_or(milliseconds(0));
    if (others_have_answered(view, *newest) || known_for >= kSettleTime) {
      return {Kind::kJoin, *newest, view.endpoints[*newest].finding.epoch, false, ""};
    }
    return wait_until(view.elapsed + kSettleTime - known_for);
  }
  if (auto failed = failure(view, order)) return *failed;

  std::optional<milliseconds> again;
  const auto not_before = [&](milliseconds when) {
    if (view.elapsed >= when) return true;
    again = again ? std::min(*again, when) : when;
    return false;
  };
  const auto share = view.total / static_cast<milliseconds::rep>(order.size());
  milliseconds turn{0};
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t i = order[place];
    const auto& endpoint = view.endpoints[i];
    if (is_final(endpoint.finding.answer)) continue;  // Nobody will ever host there.
    const bool is_candidate = endpoint.is_own && !endpoint.is_port_taken;
    if (is_candidate && not_before(turn) && (others_have_answered(view, i) || not_before(kFirstLook))) {
      return host(view, order, place);
    }
    turn += share;
  }
  const auto& first = view.endpoints[order[0]];
  const bool is_nobody_there =
      !first.is_own && (first.finding.answer == Answer::kUnreachable || first.finding.answer == Answer::kUnresolved ||
                        first.finding.answer == Answer::kSilent);
  if (is_nobody_there && hosts_for_nobody(view) && not_before(kOwnerTime)) return host(view, order, 0);
  return wait_until(again);
}

Choice choose_rival(const SearchView& view) {
  std::optional<milliseconds> again;
  for (std::size_t i = 0; i < view.endpoints.size(); ++i) {
    const auto& endpoint = view.endpoints[i];
    if (i == view.lost || endpoint.finding.answer != Answer::kStore) continue;
    const auto epoch = endpoint.finding.epoch;
    if (epoch > view.last_epoch || (epoch == view.last_epoch && view.lost && i < *view.lost)) {
      return {Kind::kJoin, i, epoch, false, ""};
    }
    const auto known_for = endpoint.answering_for.value_or(milliseconds(0));
    if (known_for >= kRivalTime) return {Kind::kJoin, i, epoch, false, ""};
    const auto when = view.elapsed + kRivalTime - known_for;
    again = again ? std::min(*again, when) : when;
  }
  return wait_until(again);
}

}  // namespace tensorplay::rendezvous
