#include "rendezvous/lineage.hpp"

#include <algorithm>
#include <iterator>

namespace tensorplay::rendezvous {
namespace {

constexpr TimePoint kAlways = TimePoint::min();

}  // namespace

bool Lineage::World::is_quorum(int count, bool with_first) const {
  const int size = told.group_world_size;
  if (is_open) return 2 * count > size;
  const int left = size - gone_for_good;
  return 2 * count > left || (2 * count == left && with_first) || left <= 0;
}

Lineage::Lineage(int nodes, std::chrono::nanoseconds settle_time) : settle_time_(settle_time) {
  World open;
  open.told.group_world_size = nodes;
  open.is_open = true;
  open.is_confirmed = true;
  worlds_.emplace(Key{0, -1}, open);
}

// ---- What happens -------------------------------------------------------------------------------------------------

void Lineage::join(const Joined& joined, TimePoint now) {
  leave(joined.agent, false);
  auto& here = here_[joined.agent];
  here.is_host = joined.is_store_host;
  here.since = joined.seen_epoch == 0 ? kAlways : now;
  for (const auto& past : joined.past) {
    const Key key{past.epoch, past.round};
    if (past.round < 0 || past.group_world_size <= 0 || key < worlds_.begin()->first) continue;
    auto& world = learn(past);
    if (place_in(here, world) == nullptr) here.places.push_back({&world, past.group_rank});
    if (past.is_confirmed && !world.is_confirmed) {
      world.is_confirmed = true;
      forget_before(key);
    }
  }
  if (worlds_.begin()->second.is_open) here.places.push_back({&worlds_.begin()->second, -1});
  for (const auto& [world, rank] : here.places) {
    ++world->here;
    if (here.since == kAlways) ++world->here_for_certain;
    if (rank == 0) world->has_first = true;
  }
  if (worlds_.size() > 1) ready_at_.reset();
}

void Lineage::leave(const AgentId& agent, bool for_good) {
  const auto where = here_.find(agent);
  if (where == here_.end()) return;
  for (const auto& [world, rank] : where->second.places) {
    --world->here;
    if (where->second.since == kAlways) --world->here_for_certain;
    if (for_good) ++world->gone_for_good;
    if (rank == 0) world->has_first = for_good;
  }
  here_.erase(where);
  ready_at_.reset();
}

void Lineage::start(std::uint64_t epoch, int round, const std::vector<AgentId>& members) {
  PastWorld told;
  told.epoch = epoch;
  told.round = round;
  told.group_world_size = static_cast<int>(members.size());
  auto& world = learn(told);
  int rank = 0;
  for (const auto& agent : members) here_.at(agent).places.push_back({&world, rank++});
  world.here = rank;
  world.has_first = true;
  // Who is here now counts until it goes: it takes part in a world that the others' quorum has allowed.
  for (auto& [agent, here] : here_) here.since = kAlways;
  confirmed_by_.clear();
  for (auto& [key, known] : worlds_) {
    known.here_for_certain = known.here;
    known.confirmations = 0;
    known.first_confirms = false;
  }
  is_newest_ours_ = true;
  ready_at_.reset();
}

bool Lineage::confirm(const AgentId& agent) {
  auto& [key, newest] = *worlds_.rbegin();
  const auto where = here_.find(agent);
  if (!is_newest_ours_ || newest.is_confirmed || where == here_.end()) return false;
  if (place_in(where->second, newest) == nullptr || !confirmed_by_.insert(agent).second) return false;
  for (const auto& [world, rank] : where->second.places) {
    ++world->confirmations;
    if (rank == 0) world->first_confirms = true;
  }
  for (const auto* world : relevant()) {
    if (world != &newest && !world->is_quorum(world->confirmations, world->first_confirms)) return false;
  }
  newest.is_confirmed = true;
  forget_before(key);
  return true;
}

void Lineage::doubt_all(TimePoint now) {
  for (auto& [key, world] : worlds_) world.here_for_certain = 0;
  for (auto& [agent, here] : here_) {
    here.since = here.is_host ? kAlways : now;
    if (!here.is_host) continue;
    for (const auto& place : here.places) ++place.world->here_for_certain;
  }
  ready_at_.reset();
}

Lineage::World& Lineage::learn(const PastWorld& past) {
  const Key key{past.epoch, past.round};
  if (worlds_.rbegin()->first < key) is_newest_ours_ = false;
  const auto [where, is_new] = worlds_.try_emplace(key);
  if (is_new) {
    where->second.told = past;
    ready_at_.reset();
  }
  return where->second;
}

void Lineage::forget_before(const Key& key) {
  const auto first = worlds_.find(key);
  for (auto& [agent, here] : here_) {
    std::erase_if(here.places, [&](const Place& place) {
      return std::any_of(worlds_.begin(), first, [&](const auto& known) { return &known.second == place.world; });
    });
  }
  worlds_.erase(worlds_.begin(), first);
  ready_at_.reset();
}

// ---- What follows from it -----------------------------------------------------------------------------------------

bool Lineage::has_quorum() const {
  const auto worlds = relevant();
  return std::all_of(worlds.begin(), worlds.end(), [](const World* world) { return world->is_quorum_here(); });
}

TimePoint Lineage::ready_at() const {
  if (ready_at_) return *ready_at_;
  TimePoint latest = kAlways;
  std::vector<const World*> before;
  for (const auto& [key, world] : worlds_) {
    const bool is_relevant = before.empty() || world.is_quorum_here() || !is_void(world, before);
    if (is_relevant) {
      latest = std::max(latest, quorum_time(world, nullptr));
      before.push_back(&world);
    } else {
      for (const auto* earlier : before) latest = std::max(latest, quorum_time(*earlier, &world));
    }
  }
  ready_at_ = latest == kAlways ? latest : latest + settle_time_;
  return *ready_at_;
}

Lineage::Count Lineage::count() const {
  const auto worlds = relevant();
  const auto lacking =
      std::find_if(worlds.begin(), worlds.end(), [](const World* world) { return !world->is_quorum_here(); });
  const auto& world = lacking == worlds.end() ? *worlds.back() : **lacking;
  int needed = world.here;
  while (needed > 0 && world.is_quorum(needed - 1, world.has_first)) --needed;
  while (!world.is_quorum(needed, world.has_first)) ++needed;
  return {world.here, needed, world.told.group_world_size};
}

PastWorld Lineage::newest() const {
  return relevant().back()->told;
}

int Lineage::position(const AgentId& agent) const {
  const auto where = here_.find(agent);
  if (where == here_.end()) return -1;
  const auto* place = place_in(where->second, *relevant().back());
  return place == nullptr ? -1 : place->rank;
}

std::vector<const Lineage::World*> Lineage::relevant() const {
  std::vector<const World*> worlds;
  for (const auto& [key, world] : worlds_) {
    if (worlds.empty() || world.is_quorum_here() || !is_void(world, worlds)) worlds.push_back(&world);
  }
  return worlds;
}

/// Nobody will ever be told that `world` is confirmed, and its leader cannot go on with it, when enough members of each
/// world before it know nothing of it: its start never reached them, and they are here now.
bool Lineage::is_void(const World& world, const std::vector<const World*>& before) const {
  return std::all_of(before.begin(), before.end(), [&](const World* earlier) {
    if (!earlier->is_quorum_here()) return false;
    int count = 0;
    bool with_first = false;
    for (const auto& [agent, here] : here_) {
      const auto* place = place_in(here, *earlier);
      if (place == nullptr || place_in(here, world) != nullptr) continue;
      ++count;
      if (place->rank == 0) with_first = true;
    }
    return earlier->is_quorum(count, with_first);
  });
}

TimePoint Lineage::quorum_time(const World& world, const World* unknown) const {
  if (unknown == nullptr && world.is_quorum(world.here_for_certain, false)) return kAlways;
  std::vector<std::pair<TimePoint, int>> arrivals;
  for (const auto& [agent, here] : here_) {
    const auto* place = place_in(here, world);
    if (place == nullptr || (unknown != nullptr && place_in(here, *unknown) != nullptr)) continue;
    arrivals.emplace_back(here.since, place->rank);
  }
  std::sort(arrivals.begin(), arrivals.end());
  const bool is_first_here = std::any_of(arrivals.begin(), arrivals.end(), [](const auto& a) { return a.second == 0; });
  bool with_first = world.has_first && !is_first_here && unknown == nullptr;  // it is gone for good
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    if (arrivals[i].second == 0) with_first = true;
    if (world.is_quorum(static_cast<int>(i) + 1, with_first)) return arrivals[i].first;
  }
  return arrivals.empty() ? kAlways : arrivals.back().first;
}

const Lineage::Place* Lineage::place_in(const Here& here, const World& world) {
  const auto place =
      std::find_if(here.places.begin(), here.places.end(), [&](const Place& p) { return p.world == &world; });
  return place == here.places.end() ? nullptr : &*place;
}

}  // namespace tensorplay::rendezvous
