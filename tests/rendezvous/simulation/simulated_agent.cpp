#include "tests/rendezvous/simulation/simulation.hpp"

#include <algorithm>

namespace tensorplay::rendezvous::simulation {

AgentId Simulation::name(const Host& host) const {
  return "h" + std::to_string(host.index) + "_" + std::to_string(names_);
}

void Simulation::start_agent(Host& host) {
  ++names_;
  ++host.life;
  host.agent = std::make_unique<Agent>();
  host.agent->id = name(host);
  say(host.agent->id + " is started");
  search(host);
}

// ---- Where is the store? ------------------------------------------------------------------------------------------

void Simulation::search(Host& host) {
  auto& agent = *host.agent;
  if (agent.is_leaving) return end_agent(host, "left");
  if (agent.finish) return end_agent(host, "finished");
  agent.state = State::kSearching;
  agent.search_began = now_;
  on_agent(host.index, Ms(pick(1, 300)), [this](Host& h) { look(h); });
}

/// As rendezvous/discovery/host_choice.cpp does: the newest store is joined; the owner of an endpoint hosts when its
/// turn comes, which after a loss begins behind the lost one.
void Simulation::look(Host& host) {
  auto& agent = *host.agent;
  if (agent.state != State::kSearching) return;
  const Ms total = std::chrono::duration_cast<Ms>(options_.join_timeout);
  const auto elapsed = now_ - agent.search_began;
  if (elapsed >= total) return end_agent(host, "gave up");
  const auto oldest = agent.history.worlds().empty() ? 1 : agent.history.worlds().back().epoch;
  std::vector<Host*> order;
  for (int e = 0; e < endpoints_; ++e) {
    for (auto& other : hosts_) {
      if (other.endpoint == e) order.push_back(&other);
    }
  }
  if (agent.lost_endpoint) std::rotate(order.begin(), order.begin() + *agent.lost_endpoint + 1, order.end());
  Host* best = nullptr;
  for (auto* other : order) {
    if (!is_linked(host.index, other->index) || !other->store || other->store->is_closing || other->is_frozen) continue;
    if (other->store->core->epoch() < oldest) continue;
    if (best == nullptr || other->store->core->epoch() > best->store->core->epoch()) best = other;
  }
  if (best != nullptr) return connect(host, best->index, false);
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (order[place] != &host || elapsed < total * place / order.size() || host.store) continue;
    const auto epoch = agent.seen_epoch + 1 + place;
    open_store(host, epoch, endpoints_ > 1 && (agent.seen_epoch > 0 || place > 0));
    if (!agent.history.worlds().empty() || agent.seen_epoch > 0) agent.id = next_session(agent.id);
    agent.state = State::kWaiting;
    agent.outbox.clear();
    join(host);
    agent.seen_epoch = std::max(agent.seen_epoch, epoch);
    return;
  }
  on_agent(host.index, Ms(pick(300, 1'000)), [this](Host& h) { look(h); });
}

void Simulation::connect(Host& host, int store_host, bool is_again) {
  auto& agent = *host.agent;
  auto& target = hosts_[store_host];
  const bool is_reachable = is_linked(host.index, store_host) && (target.agent || target.store) && !target.is_frozen;
  if (is_again && !agent.has_joined) return;
  if (is_reachable && !target.store && is_again) return cut_off(host, "nobody is at the store's port");
  if (is_reachable && is_again && target.store->instance != agent.store_instance) {
    return cut_off(host, "another store is at its port");
  }
  if (!is_reachable || !target.store) {
    const auto session = agent.id;
    on_agent(host.index, Ms(pick(200, 500)), [this, session, store_host, is_again](Host& h) {
      if (h.agent->id != session || h.agent->connection) return;
      if (is_again) return connect(h, store_host, true);
      look(h);
    });
    return;
  }
  if (!is_again) {
    if (agent.has_joined || agent.seen_epoch > 0) agent.id = next_session(agent.id);
    agent.token = ++serial_;
    agent.outbox.clear();
    agent.state = State::kConnecting;
    agent.has_joined = false;
    agent.store_host = store_host;
    agent.store_instance = target.store->instance;
    agent.lease_until = now_ + lease_;
  }
  auto connection = std::make_shared<Connection>();
  connections_.push_back(connection);
  connection->id = ++serial_;
  connection->agent_host = host.index;
  connection->store_host = store_host;
  connection->store_instance = target.store->instance;
  connection->agent = agent.id;
  agent.connection = connection;
  agent.sent = 0;
  send(connection, 0, [this, connection, token = agent.token, is_again] { hello(connection, token, is_again); });
  if (!is_again) watch_lease(host);
}

// ---- The lease ----------------------------------------------------------------------------------------------------

void Simulation::ping(Host& host) {
  const auto connection = host.agent->connection;
  if (!connection) return;
  const auto sent = now_;
  send(connection, 0, [this, connection, sent] {
    auto* store = store_of(connection);
    if (store == nullptr || !store->wills.heard(connection->id, now_)) return;
    store->heard[connection->agent] = now_;
    send(connection, 1, [this, connection, sent] {
      auto& remote = hosts_[connection->agent_host];
      if (remote.agent && remote.agent->connection == connection) {
        remote.agent->lease_until = std::max(remote.agent->lease_until, sent + lease_);
      }
    });
  });
  on_agent(host.index, Ms(lease_.count() / 5), [this, connection](Host& h) {
    if (h.agent->connection == connection) ping(h);
  });
}

void Simulation::watch_lease(Host& host) {
  const auto session = host.agent->id;
  on_agent(host.index, std::max(Ms(0), std::chrono::ceil<Ms>(host.agent->lease_until - now_)),
           [this, session](Host& h) {
             if (h.agent->id != session || h.agent->store_instance == 0) return;
             if (now_ < h.agent->lease_until) return watch_lease(h);
             cut_off(h, "no answer for a whole lease");
           });
}

void Simulation::cut_off(Host& host, const char* why) {
  auto& agent = *host.agent;
  if (agent.state == State::kDone || agent.state == State::kSearching) return;
  say(agent.id + " is cut off: " + why);
  close_by_agent(agent);
  if (agent.store_host >= 0) agent.lost_endpoint = hosts_[agent.store_host].endpoint;
  agent.store_host = -1;
  agent.store_instance = 0;
  agent.has_joined = false;
  if (!host.has_workers) return search(host);
  agent.state = State::kStopping;
  agent.is_cut_off = true;
  kill_workers(host, kill_);
}

// ---- Reports and orders -------------------------------------------------------------------------------------------

void Simulation::join(Host& host) {
  auto& agent = *host.agent;
  agent.has_joined = true;
  Joined joined;
  joined.agent = agent.id;
  joined.host = "h" + std::to_string(host.index);
  joined.addresses = {joined.host};
  joined.nproc = host.nproc;
  joined.is_store_host = agent.store_host == host.index;
  joined.past = agent.history.worlds();
  joined.seen_epoch = agent.seen_epoch;
  report(host, joined);
}

void Simulation::report(Host& host, Report report) {
  auto& agent = *host.agent;
  if (agent.store_host == host.index) {
    const auto instance = agent.store_instance;
    host.inbox.emplace_back(instance, std::move(report));
    return on_host(host.index, Ms(0), [this](Host& h) {
      while (!h.inbox.empty()) {
        const auto [of, oldest] = std::move(h.inbox.front());
        h.inbox.pop_front();
        if (h.store && h.store->instance == of) read(h, oldest);
      }
    });
  }
  agent.outbox.emplace_back(++serial_, std::move(report));
  send_outbox(host);
}

void Simulation::send_outbox(Host& host) {
  auto& agent = *host.agent;
  if (!agent.connection) return;
  for (const auto& [serial, report] : agent.outbox) {
    if (serial <= agent.sent) continue;
    agent.sent = serial;
    send(agent.connection, 0, [this, connection = agent.connection, serial = serial, report = report] {
      auto& remote = hosts_[connection->agent_host];
      // The answer may get lost with the connection: then it is sent again.
      if (remote.agent && remote.agent->connection == connection && chance(90)) {
        std::erase_if(remote.agent->outbox, [&](const auto& entry) { return entry.first == serial; });
      }
      if (store_of(connection) != nullptr) read(hosts_[connection->store_host], report);
    });
  }
}

void Simulation::obey(Host& host, const Order& order) {
  auto& agent = *host.agent;
  if (const auto* start = std::get_if<StartOrder>(&order)) {
    if (agent.state != State::kWaiting) return;
    agent.history.started(*start);
    if (start->wants_confirmation) report(host, Started{agent.id, start->round});
    spawn(host, *start);
  } else if (const auto* stop = std::get_if<StopOrder>(&order)) {
    if (stop->round != agent.order.round) return;
    if (stop->at_once && host.has_workers) {
      agent.state = State::kStopping;
      kill_workers(host, kill_);
    } else if (agent.state == State::kRunning) {
      agent.state = State::kStopping;
      kill_workers(host, grace_);
    } else if (agent.state == State::kIdle) {
      agent.state = State::kWaiting;
      report(host, Stopped{agent.id, stop->round, {}, false});
    }
  } else if (const auto* finish = std::get_if<FinishOrder>(&order)) {
    agent.finish = *finish;
    if (!host.has_workers) return end_agent(host, "finished");
    agent.state = State::kStopping;
    kill_workers(host, grace_);
  } else if (const auto* confirmed = std::get_if<ConfirmedOrder>(&order)) {
    agent.history.confirmed(confirmed->round);
  }
}

// ---- Workers ------------------------------------------------------------------------------------------------------

void Simulation::spawn(Host& host, const StartOrder& order) {
  auto& agent = *host.agent;
  say(agent.id + " starts round " + std::to_string(order.epoch) + "." + std::to_string(order.round) + " rank " +
      std::to_string(order.first_rank) + " of " + std::to_string(order.world_size));
  agent.state = State::kRunning;
  agent.order = order;
  agent.failures_to_tell = 0;
  host.has_workers = true;
  host.workers = order;
  ++host.workers_of;
  if (is_calm_) on_agent(host.index, Ms(pick(5'000, 20'000)), [this](Host& h) { succeed(h); });
}

/// The guardian can do it too: it does not matter whether the agent is frozen.
void Simulation::kill_workers(Host& host, Ms at_most) {
  const auto workers = host.workers_of;
  after(Ms(pick(1, static_cast<int>(at_most.count()))), [this, index = host.index, workers] {
    auto& h = hosts_[index];
    if (!h.has_workers || h.workers_of != workers) return;
    h.has_workers = false;
    on_agent(index, Ms(pick(0, 5)), [this, workers](Host& mine) {
      if (mine.workers_of == workers) workers_gone(mine);
    });
  });
}

void Simulation::workers_gone(Host& host) {
  auto& agent = *host.agent;
  if (agent.state != State::kStopping) return;
  if (agent.is_leaving) {
    report(host, Leaving{agent.id, "SIGTERM", true});
    return end_agent(host, "left");
  }
  if (agent.finish) return end_agent(host, "finished");
  if (std::exchange(agent.is_cut_off, false)) return search(host);
  agent.state = State::kWaiting;
  Stopped stopped{agent.id, agent.order.round, {}, false};
  if (std::exchange(agent.failures_to_tell, 0) > 0) {
    auto& failure = stopped.failures.emplace_back();
    failure.rank = agent.order.first_rank;
    failure.exit_code = 1;
    failure.host = agent.id;
  }
  report(host, stopped);
}

void Simulation::fail_worker(Host& host) {
  auto& agent = *host.agent;
  if (agent.state != State::kRunning) return;
  ++failures_;
  say("a worker of " + agent.id + " fails");
  agent.failures_to_tell = 1;
  agent.state = State::kStopping;
  WorkerFailure failure;
  failure.rank = agent.order.first_rank;
  failure.exit_code = 1;
  failure.host = agent.id;
  report(host, Failed{agent.id, agent.order.round, failure});
  kill_workers(host, grace_);
}

void Simulation::succeed(Host& host) {
  auto& agent = *host.agent;
  if (agent.state != State::kRunning) return;
  host.has_workers = false;
  agent.state = State::kIdle;
  report(host, Succeeded{agent.id, agent.order.round});
}

void Simulation::leave(Host& host) {
  auto& agent = *host.agent;
  if (agent.is_leaving) return;
  agent.is_leaving = true;
  say(agent.id + " leaves");
  if (host.has_workers) {
    report(host, Leaving{agent.id, "SIGTERM", false});
    agent.state = State::kStopping;
    return kill_workers(host, grace_);
  }
  if (agent.has_joined) report(host, Leaving{agent.id, "SIGTERM", true});
  end_agent(host, "left");
}

void Simulation::end_agent(Host& host, const std::string& how) {
  auto& agent = *host.agent;
  agent.state = State::kDone;
  const int code = agent.finish ? agent.finish->exit_code : how == "gave up" ? 75 : -1;
  say(agent.id + " " + how + (code >= 0 ? ", code " + std::to_string(code) : ""));
  if (code == 0) ++tally_.succeeded;
  if (code == 75) ++tally_.gave_up;
  if (code > 0 && code != 75) ++tally_.failed;
  if (agent.connection) {
    const auto connection = agent.connection;
    send(connection, 0, [this, connection] {
      auto* store = store_of(connection);
      if (store == nullptr) return;
      store->wills.cancel(connection->id);
      store->connections.erase(connection->id);
      arm(hosts_[connection->store_host]);
    });
    connection->is_open = false;
  }
  // The store outlives its agent until everybody has the last word; without a last word it goes at once.
  const bool stays = agent.finish.has_value();
  const auto instance = host.store ? host.store->instance : 0;
  if (instance != 0) {
    on_host(host.index, stays ? Ms(20'000) : Ms(5), [this, instance](Host& h) {
      if (h.store && h.store->instance == instance) close_store(h);
    });
  }
  host.agent.reset();
  host.ended_at = now_;
}

}  // namespace tensorplay::rendezvous::simulation
