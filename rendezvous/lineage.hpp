/// Which worlds there were before, and whether those who are here may begin the next one: never two worlds, whatever
/// is cut off from whom. Pure: from what agents tell when they join.
///
/// A world may follow another only with more than half of its members (exactly half counts when group rank 0 is among
/// them), so two hosts can never both lead one on. A world is confirmed when so many members of the one before know of
/// it that nobody can get a quorum there without hearing of it; until then a quorum of each is needed. This is dynamic
/// voting with ambiguous sessions, as Yeger-Lotem, Keidar and Dolev describe it (PODC 1997).
///
/// Before the first round there is a world of all nodes that may come: whoever is here counts.
#pragma once

#include "rendezvous/messages.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tensorplay::rendezvous {

using TimePoint = std::chrono::steady_clock::time_point;

/// Joins, losses, starts and confirmations cost O(1) an agent; questions O(1) but where a world is in doubt.
/// Thread rules: one thread at a time.
class Lineage {
 public:
  /// `nodes`: how many may come, for the first round. `settle_time`: for how long those of a quorum must have been here
  /// before they count, if they were with another leader before: until then its workers may live.
  Lineage(int nodes, std::chrono::nanoseconds settle_time);

  void join(const Joined& joined, TimePoint now);
  /// `for_good`: it has ended for certain, and can be part of no other world.
  void leave(const AgentId& agent, bool for_good);
  /// This leader begins a round. `members` by group rank.
  void start(std::uint64_t epoch, int round, const std::vector<AgentId>& members);
  /// A member says that it knows of the newest world. True when that is the one by which it becomes confirmed.
  bool confirm(const AgentId& agent);
  /// This process stood still until `now`: all others may have been elsewhere.
  void doubt_all(TimePoint now);

  bool has_quorum() const;
  /// From when on a round may begin; with a quorum only.
  TimePoint ready_at() const;

  /// Of the world that still lacks members, if any does, else of the newest.
  struct Count {
    int here = 0;    ///< Members that are here,
    int needed = 0;  ///< and that must be.
    int size = 0;
  };
  Count count() const;

  /// The newest world that anybody here has told of, or that was begun here; round -1 when there is none.
  PastWorld newest() const;
  /// The agent's group rank in the newest world; -1 when it had none.
  int position(const AgentId& agent) const;

 private:
  using Key = std::pair<std::uint64_t, int>;  ///< Epoch and round: in the order of time.
  struct World {
    PastWorld told;        ///< As its first member here told it.
    bool is_open = false;  ///< The one before the first: everybody is a member.
    bool is_confirmed = false;
    int here = 0;
    int here_for_certain = 0;  ///< Those of them that were never elsewhere.
    int gone_for_good = 0;
    bool has_first = false;       ///< Group rank 0 is here, or is gone for good.
    int confirmations = 0;        ///< Members that know of the newest world,
    bool first_confirms = false;  ///< group rank 0 among them.
    bool is_quorum(int count, bool with_first) const;
    bool is_quorum_here() const { return is_quorum(here, has_first); }
  };
  struct Place {
    World* world = nullptr;
    int rank = -1;
  };
  struct Here {
    TimePoint since{};  ///< The beginning of time when it was never elsewhere.
    bool is_host = false;
    std::vector<Place> places;
  };

  World& learn(const PastWorld& past);
  void forget_before(const Key& key);
  std::vector<const World*> relevant() const;
  bool is_void(const World& world, const std::vector<const World*>& before) const;
  /// When enough members of `world` that know nothing of `unknown` (if that is given) were here.
  TimePoint quorum_time(const World& world, const World* unknown) const;
  static const Place* place_in(const Here& here, const World& world);

  std::chrono::nanoseconds settle_time_;
  std::map<Key, World> worlds_;  ///< From the last confirmed one on. Never empty.
  std::unordered_map<AgentId, Here> here_;
  bool is_newest_ours_ = false;
  std::unordered_set<AgentId> confirmed_by_;
  mutable std::optional<TimePoint> ready_at_;  ///< What ready_at() found; those who come later do not change it.
};

}  // namespace tensorplay::rendezvous
