#include "runtime/store/will_table.hpp"

#include <algorithm>
#include <utility>

namespace tensorplay::store {

WillTable::Outcome WillTable::leave(Will will, ConnectionId connection, TimePoint now) {
  if (lost_.contains({will.owner, will.token})) return Outcome::kLost;
  const auto [entry, is_new] = wills_.try_emplace(will.owner);
  Held& held = entry->second;
  if (!is_new && held.will.token != will.token) return Outcome::kOwnedByAnother;
  // A connection carries one will: the one it had under another name goes.
  if (Held* other = on_connection(connection); other != nullptr && other != &held) remove(*other);
  if (held.connection != kNoConnection) by_connection_.erase(held.connection);
  if (is_new) held.serial = next_serial_++;
  deadlines_.erase({held.deadline, held.serial});
  held.will = std::move(will);
  held.connection = connection;
  held.deadline = now + held.will.keep_alive;
  by_connection_[connection] = &held;
  deadlines_[{held.deadline, held.serial}] = &held;
  return is_new ? Outcome::kHeld : Outcome::kResumed;
}

bool WillTable::heard(ConnectionId connection, TimePoint now) {
  Held* held = on_connection(connection);
  if (held == nullptr) return false;
  set_deadline(*held, now + held->will.keep_alive);
  return true;
}

void WillTable::closed(ConnectionId connection, TimePoint now) {
  Held* held = on_connection(connection);
  if (held == nullptr) return;
  by_connection_.erase(connection);
  held->connection = kNoConnection;
  set_deadline(*held, now + held->will.reconnect);
}

bool WillTable::cancel(ConnectionId connection) {
  Held* held = on_connection(connection);
  if (held == nullptr) return false;
  remove(*held);
  return true;
}

std::optional<std::string> WillTable::declare_lost(const std::string& owner, std::uint64_t token) {
  const auto found = wills_.find(owner);
  if (found == wills_.end() || found->second.will.token != token) return std::nullopt;
  return lose(found->second);
}

std::vector<WillTable::ConnectionId> WillTable::due(TimePoint now) const {
  std::vector<ConnectionId> connections;
  for (const auto& [key, held] : deadlines_) {
    if (key.first > now) break;
    if (held->connection != kNoConnection) connections.push_back(held->connection);
  }
  return connections;
}

std::vector<std::string> WillTable::tick(TimePoint now) {
  std::vector<std::string> messages;
  if (deadlines_.empty() || deadlines_.begin()->first.first > now) return messages;
  if (now - deadlines_.begin()->first.first > kStall) {
    const std::vector<std::pair<DeadlineKey, Held*>> all(deadlines_.begin(), deadlines_.end());
    for (const auto& [key, held] : all) set_deadline(*held, std::max(key.first, now + held->will.reconnect));
    return messages;
  }
  while (!deadlines_.empty() && deadlines_.begin()->first.first <= now) {
    messages.push_back(lose(*deadlines_.begin()->second));
  }
  return messages;
}

std::optional<WillTable::TimePoint> WillTable::next_tick() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first.first;
}

WillTable::Held* WillTable::on_connection(ConnectionId connection) {
  const auto found = by_connection_.find(connection);
  return found == by_connection_.end() ? nullptr : found->second;
}

void WillTable::set_deadline(Held& held, TimePoint deadline) {
  deadlines_.erase({held.deadline, held.serial});
  held.deadline = deadline;
  deadlines_[{deadline, held.serial}] = &held;
}

std::string WillTable::lose(Held& held) {
  OwnerAndToken lost{held.will.owner, held.will.token};
  if (lost_.insert(lost).second) lost_in_order_.push_back(std::move(lost));
  if (lost_in_order_.size() > kMaxLost) {
    lost_.erase(lost_in_order_.front());
    lost_in_order_.pop_front();
  }
  auto message = std::move(held.will.message);
  remove(held);
  return message;
}

void WillTable::remove(Held& held) {
  deadlines_.erase({held.deadline, held.serial});
  if (held.connection != kNoConnection) by_connection_.erase(held.connection);
  const auto owner = held.will.owner;
  wills_.erase(owner);
}

}  // namespace tensorplay::store
