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
  held.heard = now;
  held.deadline = now + held.will.keep_alive;
  by_connection_[connection] = &held;
  deadlines_[{held.deadline, held.serial}] = &held;
  return is_new ? Outcome::kHeld : Outcome::kResumed;
}

bool WillTable::heard(ConnectionId connection, TimePoint now) {
  Held* held = on_connection(connection);
  if (held == nullptr) return false;
  held->heard = now;
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

std::optional<WillTable::Loss> WillTable::declare_lost(const std::string& owner, std::uint64_t token, TimePoint now) {
  const auto found = wills_.find(owner);
  if (found == wills_.end() || found->second.will.token != token) return std::nullopt;
  return lose(found->second, Cause::kDeclared, now);
}

std::vector<WillTable::ConnectionId> WillTable::due(TimePoint now) const {
  std::vector<ConnectionId> connections;
  for (const auto& [key, held] : deadlines_) {
    if (key.first > now) break;
    if (held->connection != kNoConnection) connections.push_back(held->connection);
  }
  return connections;
}

std::vector<WillTable::Loss> WillTable::tick(TimePoint now) {
  std::vector<Loss> losses;
  if (deadlines_.empty() || deadlines_.begin()->first.first > now) return losses;
  if (now - deadlines_.begin()->first.first > kStall) {
    const std::vector<std::pair<DeadlineKey, Held*>> all(deadlines_.begin(), deadlines_.end());
    for (const auto& [key, held] : all) set_deadline(*held, std::max(key.first, now + held->will.reconnect));
    return losses;
  }
  while (!deadlines_.empty() && deadlines_.begin()->first.first <= now) {
    Held& held = *deadlines_.begin()->second;
    losses.push_back(lose(held, held.connection == kNoConnection ? Cause::kClosed : Cause::kSilent, now));
  }
  return losses;
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

WillTable::Loss WillTable::lose(Held& held, Cause cause, TimePoint now) {
  OwnerAndToken lost{held.will.owner, held.will.token};
  if (lost_.insert(lost).second) lost_in_order_.push_back(std::move(lost));
  if (lost_in_order_.size() > kMaxLost) {
    lost_.erase(lost_in_order_.front());
    lost_in_order_.pop_front();
  }
  Loss loss{std::move(held.will.message), cause, std::chrono::duration_cast<Milliseconds>(now - held.heard)};
  remove(held);
  return loss;
}

void WillTable::remove(Held& held) {
  deadlines_.erase({held.deadline, held.serial});
  if (held.connection != kNoConnection) by_connection_.erase(held.connection);
  const auto owner = held.will.owner;
  wills_.erase(owner);
}

}  // namespace tensorplay::store
