#include "tests/rendezvous/simulation/simulation.hpp"

#include <algorithm>
#include <iostream>

namespace tensorplay::rendezvous::simulation {

void Tally::add(const Tally& other) {
  steps += other.steps;
  rounds += other.rounds;
  rounds_of_successors += other.rounds_of_successors;
  restarts += other.restarts;
  take_overs += other.take_overs;
  step_downs += other.step_downs;
  stops_for_lack_of_quorum += other.stops_for_lack_of_quorum;
  succeeded += other.succeeded;
  gave_up += other.gave_up;
  failed += other.failed;
}

Simulation::Simulation(Rules rules) : rules_(rules), random_(rules.seed), now_(std::chrono::seconds(1)) {
  const int hosts = pick(2, 7);
  endpoints_ = pick(1, std::min(hosts, 3));
  options_.max_nodes = pick(std::max(1, hosts - 2), hosts);
  options_.min_nodes = pick(1, options_.max_nodes);
  options_.restarts.max_restarts = chance(50) ? 1'000 : pick(0, 5);
  options_.last_call = std::chrono::seconds(pick(0, 10));
  options_.replacement_wait = std::chrono::seconds(chance(50) ? 0 : pick(1, 20));
  options_.join_timeout = std::chrono::seconds(pick(100, 300));
  if (chance(30)) grace_ = Ms(90'000);
  options_.lease = lease_;
  options_.kill_time = kill_;
  options_.can_be_succeeded = endpoints_ > 1;
  hosts_.resize(static_cast<std::size_t>(hosts));
  for (int i = 0; i < hosts; ++i) {
    auto& host = hosts_[static_cast<std::size_t>(i)];
    host.index = i;
    host.nproc = pick(1, 3);
    if (i < endpoints_) host.endpoint = i;
    options_.expected_hosts.push_back("h" + std::to_string(i));
    at(now_ + Ms(pick(0, 5'000)), [this, i] {
      if (!hosts_[static_cast<std::size_t>(i)].agent) start_agent(hosts_[static_cast<std::size_t>(i)]);
    });
  }
}

Simulation::~Simulation() {
  for (const auto& weak : connections_) {
    if (const auto connection = weak.lock()) connection->queue[0].clear(), connection->queue[1].clear();
  }
}

Tally Simulation::run() {
  const int rate = pick(1, 12);  // in a thousand
  while (tally_.steps < rules_.steps) {
    if (pick(1, 1'000) <= rate) play();
    // Where everything has ended a new job begins.
    if (!run_one() || everybody_is_done()) play();
  }
  calm_down();
  return tally_;
}

// ---- The clock ----------------------------------------------------------------------------------------------------

void Simulation::at(TimePoint when, std::function<void()> what) {
  later_.push({std::max(when, now_), ++serial_, std::make_shared<std::function<void()>>(std::move(what))});
}

/// What a process wanted to do later, it does when it is not frozen, and not at all when it has died.
void Simulation::on_host(int host, Ms delay, std::function<void(Host&)> what) {
  after(delay, [this, host, life = hosts_[static_cast<std::size_t>(host)].life, what = std::move(what)] {
    auto& h = hosts_[static_cast<std::size_t>(host)];
    if (h.life != life || (!h.agent && !h.store)) return;
    if (h.is_frozen) return on_host(host, Ms(50), what);
    if (h.agent || h.store) what(h);
  });
}

void Simulation::on_agent(int host, Ms delay, std::function<void(Host&)> what) {
  on_host(host, delay, [what = std::move(what)](Host& h) {
    if (h.agent) what(h);
  });
}

bool Simulation::run_one() {
  if (later_.empty()) return false;
  const auto next = later_.top();
  later_.pop();
  now_ = next.when;
  (*next.what)();
  ++tally_.steps;
  check();
  return true;
}

// ---- Chaos --------------------------------------------------------------------------------------------------------

void Simulation::play() {
  auto& host = hosts_[static_cast<std::size_t>(pick(0, static_cast<int>(hosts_.size()) - 1))];
  const int dice = pick(0, 119);
  if (dice >= 112) {
    peel();
  } else if (dice >= 106) {
    cut_off_the_leader();
  } else if (dice >= 100) {
    // The leader stands still, for a little less or more than a lease.
    for (auto& leader : hosts_) {
      if (!leader.store || leader.is_frozen) continue;
      freeze(leader);
      return after(Ms(pick(3'000, 60'000)), [this, i = leader.index] { thaw(hosts_[static_cast<std::size_t>(i)]); });
    }
  } else if (dice < 14) {
    const int other = pick(0, static_cast<int>(hosts_.size()) - 1);
    if (other == host.index) return;
    const std::pair link{std::min(host.index, other), std::max(host.index, other)};
    cut_.insert(link);
    say("cut " + std::to_string(link.first) + "-" + std::to_string(link.second));
    after(Ms(pick(200, 90'000)), [this, link] { cut_.erase(link); });
  } else if (dice < 26) {
    cut_in_two();
  } else if (dice < 38) {
    freeze(host);
    after(Ms(pick(100, 60'000)), [this, i = host.index] { thaw(hosts_[static_cast<std::size_t>(i)]); });
  } else if (dice < 50) {
    lose_process(host, chance(50));
  } else if (dice < 66) {
    if (everybody_is_done()) {
      has_begun_ = false;
      for (auto& one : hosts_) start_agent(one);
    } else if (may_start(host)) {
      start_agent(host);
    }
  } else if (dice < 70) {
    if (host.agent && !host.is_frozen) leave(host);
  } else if (dice < 84) {
    if (host.agent && !host.is_frozen) fail_worker(host);
  } else if (dice < 96) {
    if (host.agent && host.agent->connection && host.agent->has_joined) break_connection(host.agent->connection);
  } else {
    if (host.agent && !host.is_frozen) succeed(host);
  }
}

/// The known limits (docs/rendezvous.md): a process that was just started knows nothing of the job. So one at the
/// place where the store was must leave the other nodes the time to notice, and the new ones that have met nobody yet
/// must not be more than half of all (those that wait as spares counted in).
bool Simulation::may_start(const Host& host) const {
  if (host.agent || host.store || host.has_workers) return false;
  if (!has_begun_) return true;
  if (host.endpoint >= 0 && host.ended_at != TimePoint{} && now_ < host.ended_at + lease_ + kill_) return false;
  int strangers = 1;
  for (const auto& other : hosts_) {
    if (other.agent && other.agent->history.worlds().empty()) ++strangers;
  }
  const int nodes = std::max(options_.max_nodes, static_cast<int>(options_.expected_hosts.size()));
  return !options_.can_be_succeeded || 2 * strangers <= nodes;
}

void Simulation::cut_for(std::set<std::pair<int, int>> links, Ms time) {
  for (const auto& link : links) cut_.insert(link);
  after(time, [this, links = std::move(links)] {
    for (const auto& link : links) cut_.erase(link);
  });
}

std::set<std::pair<int, int>> Simulation::links_of(int host, const std::set<int>& others) {
  std::set<std::pair<int, int>> links;
  for (const int other : others) {
    if (other != host) links.insert({std::min(host, other), std::max(host, other)});
  }
  return links;
}

/// Most nodes lose the leader but not each other.
void Simulation::cut_off_the_leader() {
  for (const auto& leader : hosts_) {
    if (!leader.store) continue;
    std::set<int> others;
    for (const auto& other : hosts_) {
      if (chance(75)) others.insert(other.index);
    }
    say("cut off the leader h" + std::to_string(leader.index));
    return cut_for(links_of(leader.index, others), Ms(pick(10'000, 120'000)));
  }
}

/// The same, one after the other; and whoever stays with the leader loses it when it is about to notice.
void Simulation::peel() {
  for (const auto& leader : hosts_) {
    if (!leader.store) continue;
    say("peel off h" + std::to_string(leader.index));
    Ms time(0);
    std::set<int> all;
    for (const auto& host : hosts_) all.insert(host.index);
    for (const auto& other : hosts_) {
      if (other.index == leader.index || chance(25)) continue;
      const bool is_alone = chance(30);
      time += Ms(is_alone ? pick(10'000, 16'000) : pick(0, 8'000));
      after(time, [this, is_alone, all, i = other.index, k = leader.index] {
        cut_for(is_alone ? links_of(i, all) : links_of(i, {k}), Ms(pick(20'000, 90'000)));
      });
    }
    return;
  }
}

void Simulation::cut_in_two() {
  std::set<std::pair<int, int>> links;
  std::vector<bool> side;
  for (std::size_t i = 0; i < hosts_.size(); ++i) side.push_back(chance(50));
  for (int i = 0; i < static_cast<int>(hosts_.size()); ++i) {
    for (int k = i + 1; k < static_cast<int>(hosts_.size()); ++k) {
      if (side[static_cast<std::size_t>(i)] != side[static_cast<std::size_t>(k)]) links.insert({i, k});
    }
  }
  say("cut in two");
  for (const auto& link : links) cut_.insert(link);
  after(Ms(pick(200, 120'000)), [this, links] {
    say("healed");
    for (const auto& link : links) cut_.erase(link);
  });
}

void Simulation::calm_down() {
  say("calm");
  is_calm_ = true;
  cut_.clear();
  for (auto& host : hosts_) {
    thaw(host);
    if (host.agent) on_agent(host.index, Ms(pick(5'000, 20'000)), [this](Host& h) { succeed(h); });
    if (may_start(host) && chance(50)) start_agent(host);
  }
  const auto limit = now_ + 6 * options_.join_timeout + std::chrono::minutes(10);
  while (!everybody_is_done() && now_ < limit) {
    if (!run_one()) break;
  }
  if (everybody_is_done()) return;
  for (const auto& host : hosts_) {
    if (host.agent) {
      say(host.agent->id + " state " + std::to_string(static_cast<int>(host.agent->state)) + ", its store on h" +
          std::to_string(host.agent->store_host) + ", " + std::to_string(host.agent->outbox.size()) +
          " reports unsent");
    }
    if (host.store) {
      say("h" + std::to_string(host.index) + " leads, phase " +
          std::to_string(static_cast<int>(host.store->core->phase())) + ", epoch " +
          std::to_string(host.store->core->epoch()) + ", round " + std::to_string(host.store->core->round()));
    }
  }
  broken("an end is reached when all is calm");
}

bool Simulation::everybody_is_done() const {
  for (const auto& host : hosts_) {
    if (host.agent || host.store || host.has_workers) return false;
  }
  return true;
}

// ---- Promises -----------------------------------------------------------------------------------------------------

void Simulation::check() {
  std::set<int> ranks;
  const StartOrder* world = nullptr;
  for (const auto& host : hosts_) {
    if (!host.has_workers) continue;
    if (world != nullptr &&
        std::pair(world->epoch, world->round) != std::pair(host.workers.epoch, host.workers.round)) {
      broken("workers of one world live at a time");
    }
    world = &host.workers;
    for (int k = 0; k < host.nproc; ++k) {
      if (!ranks.insert(host.workers.first_rank + k).second) broken("no two live workers hold one rank");
    }
  }
}

void Simulation::check_start(const Effects& effects) {
  int next = 0;
  int place = 0;
  std::set<std::string> members;
  const StartOrder* world = nullptr;
  for (const auto& [agents, order] : effects.orders) {
    const auto* start = std::get_if<StartOrder>(&order);
    if (start == nullptr) continue;
    if (agents.size() != 1 || !members.insert(process_of(agents[0])).second) broken("a member is in a world once");
    if (start->group_rank != place++ || start->first_rank != next) broken("ranks are contiguous");
    next += std::stoi(agents[0].substr(1)) >= 0 ? hosts_[std::stoul(agents[0].substr(1))].nproc : 0;
    world = start;
  }
  if (world == nullptr) return;
  if (world->world_size != next || world->group_world_size != place) broken("a world is as large as its members");
  if (place < options_.min_nodes || place > options_.max_nodes) broken("a world has MIN to MAX members");
  if (world->restart_count > options_.restarts.max_restarts || world->restart_count > failures_) {
    broken("restarts stay within the budget");
  }
  ++tally_.rounds;
  has_begun_ = true;
  if (world->epoch > 1) ++tally_.rounds_of_successors;
  tally_.restarts = std::max(tally_.restarts, world->restart_count);
  if (!options_.can_be_succeeded) return;
  for (const auto& host : hosts_) {
    if (!host.agent) continue;
    for (const auto& past : host.agent->history.worlds()) {
      if (past.epoch == world->epoch && past.round == world->round) broken("no two worlds have the same name");
    }
  }
}

void Simulation::broken(const std::string& promise) const {
  throw Broken("seed " + std::to_string(rules_.seed) + ", step " + std::to_string(tally_.steps) + ", " +
               std::to_string(std::chrono::duration<double>(now_.time_since_epoch()).count()) +
               " s: not kept: " + promise);
}

void Simulation::say(const std::string& line) const {
  if (!rules_.is_loud) return;
  std::cerr << std::chrono::duration<double>(now_.time_since_epoch()).count() << " " << line << "\n";
}

}  // namespace tensorplay::rendezvous::simulation
