#include "runtime/store/key_table.hpp"

#include "runtime/store/value_rules.hpp"

#include <algorithm>
#include <utility>

namespace tensorplay::store {

void KeyTable::set(std::string&& key, std::string&& value, Releases& releases) {
  store(std::move(key), make_blob(std::move(value)), false, releases);
}

void KeyTable::append(std::string&& key, std::string&& value, Releases& releases) {
  const auto found = values_.find(key);
  if (found == values_.end()) return set(std::move(key), std::move(value), releases);
  auto& stored = found->second;
  // A reply on its way may share the old value.
  if (stored.use_count() > 1) stored = make_blob(std::string(*stored));
  stored->append(value);
  if (!lists_.empty()) wake_key(key, false, releases);
}

Blob KeyTable::compare_set(std::string&& key, std::string&& expected, std::string&& desired, Releases& releases) {
  const auto found = values_.find(key);
  const bool is_match = found == values_.end() ? expected.empty() : *found->second == expected;
  if (!is_match) return found == values_.end() ? make_blob(std::move(expected)) : found->second;
  auto value = make_blob(std::move(desired));
  store(std::move(key), value, false, releases);
  return value;
}

std::optional<std::int64_t> KeyTable::add(std::string&& key, std::int64_t delta, Releases& releases) {
  const auto found = values_.find(key);
  const auto before = found == values_.end() ? std::optional<std::int64_t>(0) : parse_counter(*found->second);
  std::int64_t sum = 0;
  if (!before || __builtin_add_overflow(*before, delta, &sum)) return std::nullopt;
  if (found != values_.end() && found->second.use_count() == 1) {
    *found->second = std::to_string(sum);
  } else {
    store(std::move(key), make_blob(std::to_string(sum)), false, releases);
    return sum;
  }
  if (!lists_.empty()) wake_key(key, false, releases);
  return sum;
}

Blob KeyTable::get(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : found->second;
}

bool KeyTable::erase(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  values_.erase(found);
  return true;
}

bool KeyTable::check(const std::vector<std::string>& names) const {
  return std::all_of(names.begin(), names.end(),
                     [this](const std::string& name) { return is_there(WaitKind::kKeys, name); });
}

void KeyTable::for_each_key(const std::function<void(const std::string&)>& visit) const {
  for (const auto& entry : values_) visit(entry.first);
}

void KeyTable::push(std::string&& queue, std::string&& value, Releases& releases) {
  // Those who take the value with their wait come first: they may not sleep while there is one, and whoever is only
  // told of a value may never take it.
  if (const auto list = lists_.find(queue); list != lists_.end()) {
    for (auto* place = list->second.first; place != nullptr; place = place->next) {
      if (place->waiter->kind == WaitKind::kQueuePop) {
        return release(*place->waiter, make_blob(std::move(value)), releases);
      }
    }
  }
  const auto entry = queues_.try_emplace(std::move(queue)).first;
  entry->second.push_back(make_blob(std::move(value)));
  wake_queue(entry->first, releases);
}

KeyTable::Popped KeyTable::pop(WaiterId waiter, std::string_view queue) {
  if (!woken_.empty()) woken_.erase(waiter);
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return {};
  auto& values = found->second;
  Popped popped{static_cast<std::int64_t>(values.size()), std::move(values.front())};
  values.pop_front();
  if (values.empty()) queues_.erase(found);
  return popped;
}

std::int64_t KeyTable::queue_length(std::string_view queue) const {
  const auto found = queues_.find(queue);
  return found == queues_.end() ? 0 : static_cast<std::int64_t>(found->second.size());
}

void KeyTable::wait(WaiterId id, WaitKind kind, std::vector<std::string>&& names, Releases& releases) {
  const bool all_there =
      std::all_of(names.begin(), names.end(), [&](const std::string& name) { return is_there(kind, name); });
  Waiter& waiter = waiters_.try_emplace(id).first->second;
  waiter.id = id;
  waiter.kind = kind;
  if (all_there) {
    auto value = kind == WaitKind::kGet        ? get(names.front())
                 : kind == WaitKind::kQueuePop ? pop(id, names.front()).value
                                               : nullptr;
    waiter.names = std::move(names);
    return release(waiter, std::move(value), releases);
  }
  enlist(waiter, names);
  if (kind == WaitKind::kMultiGet) waiter.names = std::move(names);
}

bool KeyTable::arrive(WaiterId id, std::string&& key, std::int64_t world_size, Releases& releases) {
  const auto found = values_.find(key);
  const auto before = found == values_.end() ? std::optional<std::int64_t>(0) : parse_counter(*found->second);
  std::int64_t count = 0;
  if (!before || __builtin_add_overflow(*before, 1, &count)) return false;
  const bool is_last = count >= world_size;
  Waiter& waiter = waiters_.try_emplace(id).first->second;
  waiter.id = id;
  waiter.kind = WaitKind::kBarrier;
  std::vector<std::string> names{key};
  // Those who came before wake before the last one.
  store(std::move(key), make_blob(std::to_string(count)), !is_last, releases);
  if (is_last) {
    release(waiter, nullptr, releases);
  } else {
    enlist(waiter, names);
  }
  return true;
}

void KeyTable::cancel(WaiterId id, Releases& releases) {
  if (const auto found = waiters_.find(id); found != waiters_.end()) forget(found->second);
  if (woken_.empty()) return;
  if (const auto found = woken_.find(id); found != woken_.end()) {
    const auto queue = std::move(found->second);
    woken_.erase(found);
    if (queues_.contains(queue)) wake_queue(queue, releases);
  }
}

void KeyTable::clear() {
  waiters_.clear();
  lists_.clear();
  woken_.clear();
  values_.clear();
  queues_.clear();
}

bool KeyTable::is_there(WaitKind kind, std::string_view name) const {
  switch (kind) {
    case WaitKind::kKeys:
      return values_.contains(name) || queues_.contains(name);
    case WaitKind::kQueuePop:
      return queues_.contains(name);
    default:
      return values_.contains(name);
  }
}

void KeyTable::store(std::string&& key, Blob value, bool is_arrival, Releases& releases) {
  const auto entry = values_.insert_or_assign(std::move(key), std::move(value)).first;
  if (!lists_.empty()) wake_key(entry->first, is_arrival, releases);
}

void KeyTable::enlist(Waiter& waiter, const std::vector<std::string>& names) {
  const auto is_missing = [&](const std::string& name) {
    return waiter.kind == WaitKind::kBarrier || !is_there(waiter.kind, name);
  };
  waiter.missing = static_cast<std::size_t>(std::count_if(names.begin(), names.end(), is_missing));
  waiter.places.clear();
  waiter.places.reserve(waiter.missing);
  for (const auto& name : names) {
    if (!is_missing(name)) continue;
    const auto entry = lists_.try_emplace(name).first;
    WaitList& list = entry->second;
    list.name = &entry->first;
    Place& place = waiter.places.emplace_back(Place{&waiter, &list, list.last, nullptr});
    (list.last != nullptr ? list.last->next : list.first) = &place;
    list.last = &place;
  }
}

void KeyTable::unlink(Place& place) {
  WaitList* list = std::exchange(place.list, nullptr);
  if (list == nullptr) return;
  (place.previous != nullptr ? place.previous->next : list->first) = place.next;
  (place.next != nullptr ? place.next->previous : list->last) = place.previous;
  if (list->first == nullptr) lists_.erase(lists_.find(*list->name));
}

void KeyTable::wake_key(std::string_view key, bool is_arrival, Releases& releases) {
  const auto found = lists_.find(key);
  if (found == lists_.end()) return;
  Place* next = nullptr;
  for (auto* place = found->second.first; place != nullptr; place = next) {
    next = place->next;
    Waiter& waiter = *place->waiter;
    if (waiter.kind == WaitKind::kQueuePop) continue;
    // An arrival that is not the last is seen by those who wait for the key, not by those at the barrier.
    if (waiter.kind == WaitKind::kBarrier && is_arrival) continue;
    unlink(*place);
    if (--waiter.missing > 0) continue;
    if (waiter.kind == WaitKind::kMultiGet) {
      const auto names = std::move(waiter.names);
      const bool all_there =
          std::all_of(names.begin(), names.end(), [&](const std::string& name) { return values_.contains(name); });
      if (!all_there) enlist(waiter, names);  // One that was there has been deleted since.
      waiter.names = names;
      if (!all_there) continue;
    }
    release(waiter, waiter.kind == WaitKind::kGet ? get(key) : nullptr, releases);
  }
}

void KeyTable::wake_queue(std::string_view queue, Releases& releases) {
  const auto found = lists_.find(queue);
  if (found == lists_.end()) return;
  Place* next = nullptr;
  for (auto* place = found->second.first; place != nullptr; place = next) {
    next = place->next;
    Waiter& waiter = *place->waiter;
    if (waiter.kind != WaitKind::kKeys) continue;
    unlink(*place);
    if (--waiter.missing > 0) continue;
    woken_.insert_or_assign(waiter.id, std::string(queue));
    return release(waiter, nullptr, releases);
  }
}

void KeyTable::release(Waiter& waiter, Blob value, Releases& releases) {
  Release release{waiter.id, waiter.kind, std::move(value), {}};
  if (waiter.kind == WaitKind::kMultiGet) {
    release.values.reserve(waiter.names.size());
    for (const auto& name : waiter.names) release.values.push_back(get(name));
  }
  releases.push_back(std::move(release));
  forget(waiter);
}

void KeyTable::forget(Waiter& waiter) {
  for (auto& place : waiter.places) unlink(place);
  const auto id = waiter.id;
  waiters_.erase(id);
}

}  // namespace tensorplay::store
