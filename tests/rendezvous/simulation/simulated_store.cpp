#include "tests/rendezvous/simulation/simulation.hpp"

namespace tensorplay::rendezvous::simulation {
namespace {

/// Whether the one that stands as `own` should step down in favour of `other`: a quorum counts first, then the epoch.
/// The product's hosts know the other's epoch alone, and tell its quorum by how long it keeps its place (choose_rival).
bool gives_way(const Standing& own, const Standing& other) {
  if (own.has_quorum != other.has_quorum) return other.has_quorum;
  return std::pair(other.epoch, other.round) > std::pair(own.epoch, own.round);
}

}  // namespace

Simulation::Store* Simulation::store_of(const ConnectionPtr& connection) {
  auto& store = hosts_[connection->store_host].store;
  return store && store->instance == connection->store_instance ? store.get() : nullptr;
}

void Simulation::open_store(Host& host, std::uint64_t epoch, bool is_successor) {
  auto options = options_;
  options.epoch = epoch;
  options.is_successor = is_successor;
  options.place = "h" + std::to_string(host.index);
  host.store = std::make_unique<Store>();
  host.store->host = host.index;
  host.store->instance = ++serial_;
  host.store->core.emplace(options);
  say("h" + std::to_string(host.index) + " hosts a store of epoch " + std::to_string(epoch));
  if (is_successor) ++tally_.take_overs;
  auto& agent = *host.agent;
  agent.store_host = host.index;
  agent.store_instance = host.store->instance;
  look_for_a_better_host(host);
}

void Simulation::close_store(Host& host) {
  if (!host.store) return;
  const auto store = std::move(host.store);
  host.store = nullptr;
  for (const auto& [id, connection] : store->connections) {
    connection->is_open_at_store = false;
    send(connection, 1, [this, connection] {
      auto& remote = hosts_[connection->agent_host];
      connection->is_open = false;
      if (!remote.agent || remote.agent->connection != connection) return;
      remote.agent->connection = nullptr;
      connect(remote, connection->store_host, true);
    });
  }
  if (host.agent && host.agent->store_instance == store->instance) cut_off(host, "its own store is closed");
}

void Simulation::hello(const ConnectionPtr& connection, std::uint64_t token, bool is_again) {
  auto* store = store_of(connection);
  if (store == nullptr) return;
  auto& host = hosts_[connection->store_host];
  const auto outcome =
      store->wills.leave({connection->agent, token, lease_, Ms(2'000), connection->agent}, connection->id, now_);
  using Outcome = store::WillTable::Outcome;
  const bool is_held = outcome == Outcome::kHeld || outcome == Outcome::kResumed;
  const bool is_refused = !is_held || (is_again && outcome == Outcome::kHeld) || store->is_closing;
  if (is_held) {
    store->connections[connection->id] = connection;
    store->heard[connection->agent] = now_;
  }
  arm(host);
  const auto epoch = store->core->epoch();
  send(connection, 1, [this, connection, is_refused, is_again, epoch] {
    auto& remote = hosts_[connection->agent_host];
    if (!remote.agent || remote.agent->connection != connection) return;
    auto& agent = *remote.agent;
    if (is_refused) return cut_off(remote, "the store refuses it");
    if (!is_again) {
      agent.state = State::kWaiting;
      join(remote);
      agent.seen_epoch = std::max(agent.seen_epoch, epoch);
    }
    send_outbox(remote);
    ping(remote);
  });
  if (!is_refused && is_again) {
    auto& mail = store->mail[connection->agent];
    mail.sent_up_to = mail.orders.empty() ? mail.count : mail.orders.front().first - 1;
    flush(host, connection->agent);
  }
}

void Simulation::read(Host& host, const Report& report) {
  std::visit(
      [&](const auto& r) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(r)>, Will>) apply(host, Event(r));
      },
      report);
}

void Simulation::apply(Host& host, const Event& event) {
  auto* store = host.store.get();
  if (store == nullptr) return;
  const auto instance = store->instance;
  const auto effects = store->core->apply(event, now_);
  check_start(effects);
  std::set<AgentId> told;
  for (const auto& [agents, order] : effects.orders) {
    for (const auto& agent : agents) {
      auto& mail = store->mail[agent];
      mail.orders.emplace_back(++mail.count, order);
      told.insert(agent);
    }
  }
  for (const auto& agent : told) flush(host, agent);
  const bool has_quorum = store->core->standing().has_quorum;
  if (store->had_quorum && !has_quorum && store->phase != Membership::Phase::kForming)
    ++tally_.stops_for_lack_of_quorum;
  store->had_quorum = has_quorum;
  const auto phase = store->core->phase();
  if (std::exchange(store->phase, phase) != phase) {
    if (phase == Membership::Phase::kSteppedDown) {
      ++tally_.step_downs;
      say("h" + std::to_string(host.index) + " steps down");
      store->is_closing = true;
      on_host(host.index, Ms(pick(1, 300)), [this, instance](Host& h) {
        if (h.store && h.store->instance == instance) close_store(h);
      });
    } else if (phase == Membership::Phase::kFinished) {
      say("h" + std::to_string(host.index) + " finishes");
    }
  }
  arm(host);
}

/// Sends the orders that have not been sent on this connection; its own agent reads them in this process.
void Simulation::flush(Host& host, const AgentId& agent) {
  auto& store = *host.store;
  auto& mail = store.mail[agent];
  const auto instance = store.instance;
  if (host.agent && host.agent->id == agent && host.agent->store_instance == instance) {
    return on_host(host.index, Ms(0), [this, agent, instance](Host& h) { read_orders(h, h, agent, instance, 0); });
  }
  ConnectionPtr connection;
  for (const auto& [id, candidate] : store.connections) {
    if (candidate->agent == agent) connection = candidate;
  }
  if (!connection) return;
  for (const auto& [serial, order] : mail.orders) {
    if (serial <= mail.sent_up_to) continue;
    mail.sent_up_to = serial;
    send(connection, 1, [this, connection, agent, instance, serial = serial] {
      auto& remote = hosts_[static_cast<std::size_t>(connection->agent_host)];
      if (!remote.agent || remote.agent->connection != connection) return;
      read_orders(hosts_[static_cast<std::size_t>(connection->store_host)], remote, agent, instance, serial);
    });
  }
}

/// Orders are taken out of the queue when they are read, in their order: up to `last`, or all.
void Simulation::read_orders(Host& from, Host& to, const AgentId& agent, std::uint64_t instance, std::uint64_t last) {
  while (from.store && from.store->instance == instance && to.agent && to.agent->id == agent) {
    auto& orders = from.store->mail[agent].orders;
    if (orders.empty() || (last != 0 && orders.front().first > last)) return;
    const auto order = std::move(orders.front().second);
    orders.pop_front();
    obey(to, order);
  }
}

/// One timer for the wills and one for the core, as in the server and the leader.
void Simulation::arm(Host& host) {
  if (!host.store) return;
  auto& store = *host.store;
  const auto instance = store.instance;
  if (const auto tick = store.wills.next_tick(); tick && tick != store.will_tick) {
    store.will_tick = tick;
    on_host(host.index, std::chrono::ceil<Ms>(*tick - now_), [this, instance, due = *tick](Host& h) {
      if (!h.store || h.store->instance != instance || h.store->will_tick != due) return;
      h.store->will_tick.reset();
      for (const auto& loss : h.store->wills.tick(now_)) {
        const AgentId agent = loss.message;
        const auto gone = h.store->heard[agent] + lease_ + kill_;
        say("h" + std::to_string(h.index) + " has lost " + agent);
        apply(h, Lost{agent, "no answer", gone, false});
        if (!h.store) return;
      }
      arm(h);
    });
  }
  if (const auto tick = store.core->next_tick(); tick && tick != store.core_tick) {
    store.core_tick = tick;
    on_host(host.index, std::max(Ms(0), std::chrono::ceil<Ms>(*tick - now_)), [this, instance, due = *tick](Host& h) {
      if (!h.store || h.store->instance != instance || h.store->core_tick != due) return;
      h.store->core_tick.reset();
      apply(h, Tick{});
    });
  }
}

/// Who waits for a quorum asks at the other places whether somebody leads there.
void Simulation::look_for_a_better_host(Host& host) {
  const auto instance = host.store->instance;
  on_host(host.index, Ms(2'000 + pick(0, 500)), [this, instance](Host& h) {
    if (!h.store || h.store->instance != instance || h.store->core->phase() == Membership::Phase::kFinished) return;
    if (h.store->core->is_waiting_for_quorum()) {
      for (auto& other : hosts_) {
        if (other.index == h.index || other.endpoint < 0 || !other.store || other.store->is_closing || other.is_frozen)
          continue;
        if (!is_linked(h.index, other.index)) continue;
        const auto own = h.store->core->standing();
        const auto theirs = other.store->core->standing();
        if (!gives_way(own, theirs)) continue;
        say("h" + std::to_string(h.index) + " gives way to h" + std::to_string(other.index));
        apply(h, Succession{"h" + std::to_string(other.index)});
        return;
      }
    }
    look_for_a_better_host(h);
  });
}

}  // namespace tensorplay::rendezvous::simulation
