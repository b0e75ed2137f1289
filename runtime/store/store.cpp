// What a store can do with nothing but its basic operations.
#include "tensorplay/distributed/store.hpp"

#include "runtime/store/value_rules.hpp"
#include "tensorplay/distributed/errors.hpp"

namespace tensorplay::distributed {

Store::~Store() = default;

void Store::append(std::string_view key, std::string_view value) {
  // Compare-and-set cannot tell our success from another's when both write the same bytes: stores that can lock
  // override this.
  const std::string name(key);
  std::string current = check({name}) ? get(key) : std::string();
  while (true) {
    const std::string desired = current + std::string(value);
    std::string answer = compare_set(key, current, desired);
    if (answer == desired) return;
    // A key deleted meanwhile answers with what was expected: begin anew from nothing.
    current = answer == current ? std::string() : std::move(answer);
  }
}

std::vector<std::string> Store::multi_get(const std::vector<std::string>& keys) {
  wait(keys);
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const auto& key : keys) values.push_back(get(key));
  return values;
}

void Store::multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  if (keys.size() != values.size()) {
    throw DistStoreError("multi_set: " + std::to_string(keys.size()) + " keys and " + std::to_string(values.size()) +
                         " values; give one value for each key");
  }
  for (std::size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}

void Store::queue_push(std::string_view, std::string_view) {
  throw NotImplementedError("this store has no queues");
}

std::string Store::queue_pop(std::string_view, bool) {
  throw NotImplementedError("this store has no queues");
}

std::int64_t Store::queue_len(std::string_view) {
  throw NotImplementedError("this store has no queues");
}

std::vector<std::string> Store::list_keys() {
  throw NotImplementedError("this store cannot list its keys");
}

void Store::barrier(std::string_view key, std::int64_t world_size, Timeout timeout) {
  const std::string arrived = std::string(key) + "/num_members";
  const std::string last = std::string(key) + "/last_member";
  if (add(arrived, 1) == world_size) set(last, "1");
  try {
    wait({last}, timeout);
  } catch (const StoreTimeoutError&) {
    throw StoreTimeoutError("barrier timeout after " + std::to_string(timeout.count()) +
                            "ms, key: " + std::string(key) + ": " + std::to_string(add(arrived, 0)) + " of " +
                            std::to_string(world_size) + " arrived");
  }
}

}  // namespace tensorplay::distributed
