#include "tests/rendezvous/simulation/simulation.hpp"

namespace tensorplay::rendezvous::simulation {

Ms Simulation::delay() {
  return Ms(chance(5) ? pick(100, 900) : pick(1, 30));
}

/// Direction 0 goes to the store, 1 to the agent. TCP: what is cut off arrives later or never, and in order.
void Simulation::send(const ConnectionPtr& connection, int direction, std::function<void()> message) {
  connection->queue[direction].push_back(std::move(message));
  auto& last = connection->last[direction];
  last = std::max(last, now_ + delay());
  at(last, [this, connection, direction] { pump(connection, direction); });
}

void Simulation::pump(const ConnectionPtr& connection, int direction) {
  auto& queue = connection->queue[direction];
  if (queue.empty()) return;
  const int to = direction == 0 ? connection->store_host : connection->agent_host;
  if (direction == 0 ? !connection->is_open_at_store : !connection->is_open) return queue.clear();
  if (!is_linked(connection->agent_host, connection->store_host) || hosts_[to].is_frozen) {
    after(Ms(200), [this, connection, direction] { pump(connection, direction); });
    return;
  }
  const auto message = std::move(queue.front());
  queue.pop_front();
  message();
}

/// The agent gives the connection up. Nothing that it has not sent yet goes out; the store sees the end when it can.
void Simulation::close_by_agent(Agent& agent) {
  if (!agent.connection) return;
  const auto connection = std::exchange(agent.connection, nullptr);
  connection->is_open = false;
  connection->queue[0].clear();
  send(connection, 0, [this, connection] {
    connection->is_open_at_store = false;
    if (auto* store = store_of(connection)) {
      store->wills.closed(connection->id, now_);
      store->connections.erase(connection->id);
      arm(hosts_[connection->store_host]);
    }
  });
}

/// A blip: both ends see it, at their own time. What was on its way is lost; both send again what was not answered.
void Simulation::break_connection(const ConnectionPtr& connection) {
  if (auto* store = store_of(connection)) {
    connection->is_open_at_store = false;
    store->wills.closed(connection->id, now_);
    store->connections.erase(connection->id);
    arm(hosts_[connection->store_host]);
  }
  connection->is_open = false;
  const int agent_host = connection->agent_host;
  on_host(agent_host, delay(), [this, connection](Host& host) {
    if (!host.agent || host.agent->connection != connection) return;
    host.agent->connection = nullptr;
    connect(host, connection->store_host, true);
  });
}

}  // namespace tensorplay::rendezvous::simulation
