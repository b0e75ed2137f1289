#pragma once

#include "runtime/store/blob.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tensorplay::store {

/// Names whoever waits, opaquely: the server gives each connection one. One waiter has one wait at a time.
using WaiterId = std::uint64_t;

/// What a waiter waits for, and so what it must be told when that has come.
enum class WaitKind : std::uint8_t {
  kKeys,      ///< That every name is a key, or a queue that is not empty.
  kGet,       ///< One key, for its value.
  kMultiGet,  ///< All keys at the same time, for their values.
  kQueuePop,  ///< A queue's next value, which it takes.
  kBarrier,   ///< Its barrier's last arrival.
};

/// A wait that is over.
struct Release {
  WaiterId waiter = 0;
  WaitKind kind = WaitKind::kKeys;
  Blob value;                ///< For kGet and kQueuePop.
  std::vector<Blob> values;  ///< For kMultiGet, in the order of its keys.
};
using Releases = std::vector<Release>;

/// Keys, counters, queues, barriers, and who waits for them: what a store server knows, without any of its I/O.
///
/// Calls that store something append to `releases` the waits that are over because of it, in the order in which they
/// began. Source of the semantics: PyTorch's TCPStore server, with these differences: a compare_set wakes only when it
/// stores; each push to a queue wakes one waiter, which is then no longer registered, and should that waiter go away
/// before it takes the value the next one is woken in its place; a counter that overflows is refused.
/// Queues and keys are name spaces of their own: the same name may be both.
/// A core without I/O. Thread rules: none of its own; one user at a time.
class KeyTable {
 public:
  KeyTable() = default;
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  // ---- Keys.

  void set(std::string&& key, std::string&& value, Releases& releases);
  void append(std::string&& key, std::string&& value, Releases& releases);
  /// Returns what the client is told: what is stored afterwards, or `expected` where a missing key was expected to have
  /// a value.
  Blob compare_set(std::string&& key, std::string&& expected, std::string&& desired, Releases& releases);
  /// The new value; nullopt, with nothing changed, when the old one is not a number or the sum does not fit.
  std::optional<std::int64_t> add(std::string&& key, std::int64_t delta, Releases& releases);
  Blob get(std::string_view key) const;  ///< Null when there is none.
  bool erase(std::string_view key);      ///< Whether it existed.
  bool check(const std::vector<std::string>& names) const;
  std::size_t size() const noexcept { return values_.size(); }
  void for_each_key(const std::function<void(const std::string&)>& visit) const;

  // ---- Queues.

  void push(std::string&& queue, std::string&& value, Releases& releases);
  struct Popped {
    std::int64_t length_before = 0;
    Blob value;  ///< Null when the queue was empty.
  };
  Popped pop(WaiterId waiter, std::string_view queue);
  std::int64_t queue_length(std::string_view queue) const;

  // ---- Waits. Each either registers `waiter`, which must not be waiting already, or releases it at once.

  void wait(WaiterId waiter, WaitKind kind, std::vector<std::string>&& names, Releases& releases);

  /// Counts an arrival at a barrier. The arrival that makes the count `world_size` or more releases itself and all who
  /// wait there. False, with nothing changed, when the key holds something else than a number.
  bool arrive(WaiterId waiter, std::string&& key, std::int64_t world_size, Releases& releases);

  /// Ends the waiter's wait, if it has one, and hands the wake of a queue that it did not use to the next in line: for
  /// a waiter that has timed out or gone.
  void cancel(WaiterId waiter, Releases& releases);

  bool is_waiting(WaiterId waiter) const { return waiters_.contains(waiter); }
  std::size_t waiter_count() const noexcept { return waiters_.size(); }

  /// Forgets everything, the waiters too: they are not released.
  void clear();

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  template <typename Mapped>
  using TextMap = std::unordered_map<std::string, Mapped, TextHash, std::equal_to<>>;

  struct Waiter;
  struct WaitList;

  /// A waiter's place in the list of one name, linked both ways: leaving costs the same however long the list is.
  struct Place {
    Waiter* waiter = nullptr;
    WaitList* list = nullptr;
    Place* previous = nullptr;
    Place* next = nullptr;
  };
  struct WaitList {
    const std::string* name = nullptr;  ///< The map's own key.
    Place* first = nullptr;
    Place* last = nullptr;
  };
  struct Waiter {
    WaiterId id = 0;
    WaitKind kind = WaitKind::kKeys;
    std::size_t missing = 0;
    std::vector<Place> places;       ///< Never grows after the first is linked.
    std::vector<std::string> names;  ///< For kMultiGet only.
  };

  bool is_there(WaitKind kind, std::string_view name) const;
  void store(std::string&& key, Blob value, bool is_arrival, Releases& releases);
  void enlist(Waiter& waiter, const std::vector<std::string>& names);
  void unlink(Place& place);
  void wake_key(std::string_view key, bool is_arrival, Releases& releases);
  void wake_queue(std::string_view queue, Releases& releases);
  void release(Waiter& waiter, Blob value, Releases& releases);
  void forget(Waiter& waiter);

  TextMap<Blob> values_;
  TextMap<std::deque<Blob>> queues_;  ///< Without empty ones.
  TextMap<WaitList> lists_;           ///< Without empty ones.
  std::unordered_map<WaiterId, Waiter> waiters_;
  std::unordered_map<WaiterId, std::string> woken_;  ///< Told that a queue has a value, and has not popped since.
};

}  // namespace tensorplay::store
