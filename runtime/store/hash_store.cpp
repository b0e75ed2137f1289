#include "tensorplay/distributed/hash_store.hpp"

#include "runtime/store/value_rules.hpp"
#include "tensorplay/distributed/deadline.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

namespace tensorplay::distributed {

struct HashStore::Table {
  std::mutex mutex;
  // One condition for all keys, always woken as a whole: waking a single thread could pick one that waits for
  // something else.
  std::condition_variable changed;
  std::map<std::string, std::string, std::less<>> values;
  std::map<std::string, std::deque<std::string>, std::less<>> queues;

  const std::string* find(std::string_view key) const {
    const auto found = values.find(key);
    return found == values.end() ? nullptr : &found->second;
  }

  void put(std::string_view key, std::string value) {
    values.insert_or_assign(std::string(key), std::move(value));
    changed.notify_all();
  }

  bool has(std::string_view key) const {
    if (values.contains(key)) return true;
    const auto queue = queues.find(key);
    return queue != queues.end() && !queue->second.empty();
  }

  template <typename Condition>
  bool wait_for(std::unique_lock<std::mutex>& lock, Deadline deadline, Condition condition) {
    if (!deadline.is_never()) return changed.wait_until(lock, deadline.when(), condition);
    changed.wait(lock, condition);
    return true;
  }
};

struct HashStore::State {
  std::atomic<Timeout> timeout;
};

namespace {

[[noreturn]] void throw_wait_timeout(Store::Timeout timeout, const std::vector<std::string>& missing) {
  throw StoreTimeoutError("hash store: " + store::wait_timeout_text(timeout.count(), missing));
}

}  // namespace

HashStore::HashStore(Timeout timeout) : HashStore(std::make_shared<Table>(), timeout) {}

HashStore::HashStore(std::shared_ptr<Table> table, Timeout timeout)
    : table_(std::move(table)), state_(std::make_unique<State>()) {
  set_timeout(timeout);
}

HashStore::~HashStore() = default;

void HashStore::set(std::string_view key, std::string_view value) {
  const std::lock_guard lock(table_->mutex);
  table_->put(key, std::string(value));
}

std::string HashStore::get(std::string_view key) {
  const Timeout limit = timeout();
  std::unique_lock lock(table_->mutex);
  const bool is_there = table_->wait_for(lock, Deadline::after(limit), [&] { return table_->find(key) != nullptr; });
  if (!is_there) throw_wait_timeout(limit, {std::string(key)});
  return *table_->find(key);
}

std::int64_t HashStore::add(std::string_view key, std::int64_t delta) {
  const std::lock_guard lock(table_->mutex);
  const std::int64_t sum = store::add_to_counter(table_->find(key), delta, key);
  table_->put(key, std::to_string(sum));
  return sum;
}

std::string HashStore::compare_set(std::string_view key, std::string_view expected, std::string_view desired) {
  const std::lock_guard lock(table_->mutex);
  auto outcome = store::compare_set_outcome(table_->find(key), expected, desired);
  if (outcome.is_stored) table_->put(key, outcome.answer);
  return std::move(outcome.answer);
}

bool HashStore::check(const std::vector<std::string>& keys) {
  const std::lock_guard lock(table_->mutex);
  return std::all_of(keys.begin(), keys.end(), [&](const auto& key) { return table_->has(key); });
}

void HashStore::wait(const std::vector<std::string>& keys, Timeout timeout) {
  const auto deadline = Deadline::after(timeout);
  std::unique_lock lock(table_->mutex);
  const auto is_missing = [&](const auto& key) { return !table_->has(key); };
  const bool are_there =
      table_->wait_for(lock, deadline, [&] { return std::none_of(keys.begin(), keys.end(), is_missing); });
  if (are_there) return;
  std::vector<std::string> missing;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(missing), is_missing);
  throw_wait_timeout(timeout, missing);
}

bool HashStore::delete_key(std::string_view key) {
  const std::lock_guard lock(table_->mutex);
  const auto found = table_->values.find(key);
  if (found == table_->values.end()) return false;
  table_->values.erase(found);
  return true;
}

std::int64_t HashStore::num_keys() {
  const std::lock_guard lock(table_->mutex);
  return static_cast<std::int64_t>(table_->values.size());
}

void HashStore::append(std::string_view key, std::string_view value) {
  const std::lock_guard lock(table_->mutex);
  const std::string* current = table_->find(key);
  table_->put(key, (current != nullptr ? *current : std::string()) + std::string(value));
}

std::vector<std::string> HashStore::multi_get(const std::vector<std::string>& keys) {
  const Timeout limit = timeout();
  std::unique_lock lock(table_->mutex);
  const auto is_missing = [&](const auto& key) { return table_->find(key) == nullptr; };
  const bool are_there = table_->wait_for(lock, Deadline::after(limit),
                                          [&] { return std::none_of(keys.begin(), keys.end(), is_missing); });
  if (!are_there) {
    std::vector<std::string> missing;
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(missing), is_missing);
    throw_wait_timeout(limit, missing);
  }
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const auto& key : keys) values.push_back(*table_->find(key));
  return values;
}

void HashStore::multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  if (keys.size() != values.size()) return Store::multi_set(keys, values);  // throws
  const std::lock_guard lock(table_->mutex);
  for (std::size_t i = 0; i < keys.size(); ++i) table_->put(keys[i], values[i]);
}

void HashStore::queue_push(std::string_view key, std::string_view value) {
  const std::lock_guard lock(table_->mutex);
  table_->queues[std::string(key)].emplace_back(value);
  table_->changed.notify_all();
}

std::string HashStore::queue_pop(std::string_view key, bool block) {
  const Timeout limit = timeout();
  const auto deadline = block ? Deadline::after(limit) : Deadline::after(Timeout::zero());
  std::unique_lock lock(table_->mutex);
  const bool has_value = table_->wait_for(lock, deadline, [&] { return table_->queues.contains(key); });
  if (!has_value && block) throw_wait_timeout(limit, {std::string(key)});
  if (!has_value) throw DistQueueEmptyError("hash store: queue " + std::string(key) + " is empty");
  const auto queue = table_->queues.find(key);
  std::string value = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) table_->queues.erase(queue);
  return value;
}

std::int64_t HashStore::queue_len(std::string_view key) {
  const std::lock_guard lock(table_->mutex);
  const auto queue = table_->queues.find(key);
  return queue == table_->queues.end() ? 0 : static_cast<std::int64_t>(queue->second.size());
}

std::vector<std::string> HashStore::list_keys() {
  const std::lock_guard lock(table_->mutex);
  std::vector<std::string> keys;
  keys.reserve(table_->values.size());
  for (const auto& [key, value] : table_->values) keys.push_back(key);
  return keys;
}

std::shared_ptr<Store> HashStore::clone() {
  return std::shared_ptr<Store>(new HashStore(table_, timeout()));
}

Store::Timeout HashStore::timeout() const {
  return state_->timeout.load(std::memory_order_relaxed);
}

void HashStore::set_timeout(Timeout timeout) {
  (void)Deadline::after(timeout);  // refuses a negative one
  state_->timeout.store(timeout, std::memory_order_relaxed);
}

}  // namespace tensorplay::distributed
