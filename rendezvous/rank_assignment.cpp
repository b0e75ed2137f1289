#include "rendezvous/rank_assignment.hpp"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace tensorplay::rendezvous {
namespace {

constexpr int kLast = std::numeric_limits<int>::max();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Names two members that gave the same rank; empty when all are distinct.
std::string find_repeated_hint(const std::vector<Candidate>& members) {
  std::unordered_map<int, const Joined*> seen;
  for (const auto& member : members) {
    if (!member.node->rank_hint) continue;
    const auto [where, is_new] = seen.emplace(*member.node->rank_hint, member.node);
    if (!is_new) {
      return "the node ranks given are ignored: " + where->second->host + " and " + member.node->host + " both say " +
             std::to_string(*member.node->rank_hint);
    }
  }
  return {};
}

std::string master_address(const std::vector<Candidate>& members) {
  const auto& addresses = members.front().node->addresses;
  if (addresses.empty()) return members.front().node->host;
  const auto& host = members.front().node->host;
  const bool is_one_host =
      std::all_of(members.begin(), members.end(), [&](const Candidate& c) { return c.node->host == host; });
  if (is_one_host) return addresses.front();
  const auto reachable = std::find_if_not(addresses.begin(), addresses.end(), is_loopback);
  return reachable == addresses.end() ? addresses.front() : *reachable;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const auto skip_zeros = [](std::string_view s, std::size_t& at) {
        while (at + 1 < s.size() && s[at] == '0' && is_digit(s[at + 1])) ++at;
      };
      skip_zeros(a, i);
      skip_zeros(b, j);
      const auto run = [](std::string_view s, std::size_t at) {
        std::size_t end = at;
        while (end < s.size() && is_digit(s[end])) ++end;
        return s.substr(at, end - at);
      };
      const auto x = run(a, i);
      const auto y = run(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i += x.size();
      j += y.size();
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;  // "n1" and "n01" are the same number: any fixed order will do
}

bool is_loopback(std::string_view address) {
  return address.substr(0, 4) == "127." || address == "::1" || address == "localhost" ||
         address.substr(0, 11) == "::ffff:127.";
}

RoundRoster choose_members(std::vector<Candidate> candidates, int max_nodes) {
  RoundRoster roster;
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.previous_position < 0, a.arrival) < std::pair(b.previous_position < 0, b.arrival);
  });
  const auto count = std::min(candidates.size(), static_cast<std::size_t>(std::max(max_nodes, 0)));
  roster.spares.assign(candidates.begin() + static_cast<std::ptrdiff_t>(count), candidates.end());
  candidates.resize(count);
  roster.ignored_hints = find_repeated_hint(candidates);
  const bool use_hints = roster.ignored_hints.empty();
  std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    const auto key = [&](const Candidate& c) {
      return std::tuple(use_hints ? c.node->rank_hint.value_or(kLast) : kLast,
                        c.previous_position < 0 ? kLast : c.previous_position, !c.node->is_store_host);
    };
    if (key(a) != key(b)) return key(a) < key(b);
    if (a.node->host != b.node->host) return natural_less(a.node->host, b.node->host);
    return a.arrival < b.arrival;
  });
  roster.members = std::move(candidates);
  return roster;
}

std::vector<StartOrder> make_start_orders(const std::vector<Candidate>& members, int round, int restart_count,
                                          std::uint64_t store_generation) {
  std::vector<StartOrder> orders;
  if (members.empty()) return orders;
  orders.reserve(members.size());
  std::map<std::string, int> of_role;
  int ranks = 0;
  for (const auto& member : members) {
    StartOrder order;
    order.group_rank = static_cast<int>(orders.size());
    order.first_rank = ranks;
    order.first_role_rank = of_role[member.node->role];
    ranks += member.node->nproc;
    of_role[member.node->role] += member.node->nproc;
    orders.push_back(std::move(order));
  }
  const auto master = master_address(members);
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto& order = orders[i];
    order.round = round;
    order.restart_count = restart_count;
    order.world_size = ranks;
    order.group_world_size = static_cast<int>(members.size());
    order.role_world_size = of_role[members[i].node->role];
    order.store_generation = store_generation;
    order.master_addr = master;
    order.master_port = members.front().node->port;
    order.serves_workers_store = i == 0;
  }
  return orders;
}

}  // namespace tensorplay::rendezvous
