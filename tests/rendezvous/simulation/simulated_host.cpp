// What befalls a host: its agent stands still or dies, or its power goes.
#include "tests/rendezvous/simulation/simulation.hpp"

#include <algorithm>

namespace tensorplay::rendezvous::simulation {

/// The agent's process stands still, the store in it too. Its guardian kills its workers when its lease is over.
void Simulation::freeze(Host& host) {
  if (host.is_frozen || !host.agent) return;
  say("h" + std::to_string(host.index) + " is frozen");
  host.is_frozen = true;
  host.frozen_since = now_;
  const auto& agent = *host.agent;
  const auto kill_at = agent.store_host == host.index ? now_ + lease_ : std::max(now_, agent.lease_until);
  at(kill_at, [this, index = host.index, since = now_] {
    auto& h = hosts_[index];
    if (h.is_frozen && h.frozen_since == since && h.has_workers) kill_workers(h, kill_);
  });
}

void Simulation::thaw(Host& host) {
  if (!host.is_frozen) return;
  say("h" + std::to_string(host.index) + " is thawed");
  host.is_frozen = false;
  if (!host.agent) return;
  auto& agent = *host.agent;
  // Before anything else it looks at the clock.
  const bool is_remote = agent.store_instance != 0 && agent.store_host != host.index;
  if (is_remote && now_ >= agent.lease_until) return cut_off(host, "it was frozen");
  if (!is_remote && now_ >= host.frozen_since + lease_ && agent.state == State::kRunning) {
    agent.state = State::kStopping;
    kill_workers(host, Ms(1));
    if (!host.has_workers) workers_gone(host);
  }
}

/// The agent dies; its store with it. When the power is on its guardian kills its workers, and tells.
void Simulation::lose_process(Host& host, bool is_power_off) {
  if (!host.agent) return;
  say(host.agent->id + (is_power_off ? " loses its host" : " is killed"));
  host.is_frozen = false;
  ++host.life;
  const auto agent = std::exchange(host.agent, nullptr);
  host.ended_at = now_;
  if (host.store) {
    const auto store = std::exchange(host.store, nullptr);
    for (const auto& [id, connection] : store->connections) {
      connection->is_open_at_store = false;
      if (is_power_off) continue;
      send(connection, 1, [this, connection] {
        auto& remote = hosts_[connection->agent_host];
        connection->is_open = false;
        if (!remote.agent || remote.agent->connection != connection) return;
        remote.agent->connection = nullptr;
        connect(remote, connection->store_host, true);
      });
    }
  }
  if (is_power_off) {
    host.has_workers = false;
    if (agent->connection) {
      agent->connection->is_open = false;
      agent->connection->queue[0].clear();
    }
    return;
  }
  const auto connection = agent->connection;
  close_by_agent(*agent);
  const Ms killing(pick(1, static_cast<int>(kill_.count())));
  after(killing,
        [this, index = host.index, workers = host.workers_of, connection, id = agent->id, token = agent->token] {
          if (hosts_[index].workers_of == workers) hosts_[index].has_workers = false;
          if (!connection || !is_linked(index, connection->store_host)) return;
          on_host(connection->store_host, delay(), [this, connection, id, token](Host& h) {
            auto* store = store_of(connection);
            if (store == nullptr) return;
            const bool declared = store->wills.declare_lost(id, token, now_).has_value();
            if (declared) apply(h, Lost{id, "its guardian says so", now_, true});
          });
        });
}

}  // namespace tensorplay::rendezvous::simulation
