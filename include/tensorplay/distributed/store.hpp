#pragma once

#include "tensorplay/distributed/export.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::distributed {

/// A key-value table that processes share: how ranks find each other, and what users coordinate through.
///
/// Keys and values are byte strings; std::string holds any bytes. Reading calls wait for the key to appear, up to the
/// store's timeout, and then throw StoreTimeoutError with the keys in its text. A timeout of zero looks once and does
/// not wait, in every store; a negative one throws InvalidArgument. A lost connection throws DistNetworkError and
/// leaves the store unusable.
/// Thread rules: every method may be called from any thread; one object runs one request at a time, so a thread that
/// waits holds up the others. Use clone() for a second connection.
/// Source of the semantics: c10d's Store.
class TP_API Store {
 public:
  using Timeout = std::chrono::milliseconds;
  static constexpr Timeout kDefaultTimeout{300'000};

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store();

  /// Inserts or overwrites. May return before the server has the value; a later call on this store sees it.
  virtual void set(std::string_view key, std::string_view value) = 0;

  /// The value of `key`; waits for it.
  virtual std::string get(std::string_view key) = 0;

  /// Adds to a counter (a missing key counts as 0; stored as decimal text) and returns the new value.
  /// Throws DistError when the stored value is not a number.
  virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;

  /// Stores `desired` if the value equals `expected`, or if the key is missing and `expected` is empty. Returns what
  /// is stored afterwards; for a missing key with a non-empty `expected` it returns `expected` and stores nothing.
  virtual std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired) = 0;

  /// Whether all keys exist. Never waits.
  virtual bool check(const std::vector<std::string>& keys) = 0;

  /// Waits until all keys exist.
  void wait(const std::vector<std::string>& keys) { wait(keys, timeout()); }
  virtual void wait(const std::vector<std::string>& keys, Timeout timeout) = 0;

  /// Whether the key existed and is gone now.
  virtual bool delete_key(std::string_view key) = 0;

  /// The number of keys in the whole table; internal ones and other prefixes count, queues do not.
  virtual std::int64_t num_keys() = 0;

  /// Appends to the value, or creates it.
  virtual void append(std::string_view key, std::string_view value);

  /// The values of `keys` in their order; waits for all of them.
  virtual std::vector<std::string> multi_get(const std::vector<std::string>& keys);

  /// Sets keys[i] to values[i] for all i. Throws DistStoreError when the lengths differ.
  virtual void multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values);

  /// First-in-first-out queues, in a name space of their own. Throw NotImplementedError where the store has none.
  virtual void queue_push(std::string_view key, std::string_view value);
  /// Takes the oldest value. With `block` waits for one, else throws DistQueueEmptyError when there is none.
  virtual std::string queue_pop(std::string_view key, bool block = true);
  virtual std::int64_t queue_len(std::string_view key);

  /// All keys of this store's name space, in no order.
  virtual std::vector<std::string> list_keys();

  /// Returns once `world_size` callers have arrived at `key`. A key serves one barrier only.
  void barrier(std::string_view key, std::int64_t world_size) { barrier(key, world_size, timeout()); }
  virtual void barrier(std::string_view key, std::int64_t world_size, Timeout timeout);

  /// Whether append, multi_get and multi_set are single requests.
  virtual bool has_extended_api() const { return false; }

  /// A store of the same content that can be used beside this one (for TCP: a connection of its own).
  virtual std::shared_ptr<Store> clone() = 0;

  virtual Timeout timeout() const = 0;
  virtual void set_timeout(Timeout timeout) = 0;
};

}  // namespace tensorplay::distributed
