/// Who is in a round, in which order, with which ranks. Pure.
#pragma once

#include "rendezvous/messages.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::rendezvous {

/// A node that could be in the next round.
struct Candidate {
  const Joined* node = nullptr;  ///< Not owned.
  int previous_position = -1;    ///< Its group rank in the last round; -1 when it was not in it.
  std::uint64_t arrival = 0;     ///< Smaller came earlier.
};

struct RoundRoster {
  std::vector<Candidate> members;  ///< In the order of group ranks.
  std::vector<Candidate> spares;   ///< Those beyond `max_nodes`, in the order of arrival.
  std::string ignored_hints;       ///< Why the rank hints were ignored; empty when they were not.
};

/// Picks at most `max_nodes` (nodes of the last round first, then by arrival) and puts them in order: an explicit rank
/// first, then those of the last round in their old order, then the store's host, then hosts in natural order. Explicit
/// ranks count when no two are the same.
RoundRoster choose_members(std::vector<Candidate> candidates, int max_nodes);

/// One order for each member, in the same order. Node i's ranks follow node i-1's. `master_addr` is an address of the
/// first; in a world of several hosts it is no loopback address, if the first has any other.
std::vector<StartOrder> make_start_orders(const std::vector<Candidate>& members, int round, int restart_count,
                                          std::uint64_t store_generation);

/// "node2" before "node10": runs of digits compare as numbers, everything else by character.
bool natural_less(std::string_view a, std::string_view b);

/// 127.x, ::1, and localhost.
bool is_loopback(std::string_view address);

}  // namespace tensorplay::rendezvous
