#pragma once

#include "runtime/store/store_connection.hpp"
#include "tensorplay/distributed/deadline.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::store {

/// The requests of the TCPStore protocol, one call each, to our server or torch's; keys as they are on the wire.
///
/// Requests that the server answers at once take a deadline for the answer; those that wait there take one for the
/// waiting, and say by their result that it passed: the wait is then cancelled and the connection stays good. Whatever
/// else goes wrong throws DistNetworkError and ends the connection (see StoreConnection).
/// On our own server get, multi_get and queue_pop are one round trip, on torch's two; requests that only newer servers
/// know (queues, list_keys, barrier) are sent by the calls of that name alone.
/// Keys and values beyond the protocol's limits throw DistStoreError before anything is sent.
/// Thread rules: one user at a time. Ownership: owns its connection.
class StoreClient {
 public:
  using Deadline = distributed::Deadline;

  /// Connects and shakes hands, trying again until the deadline while nobody answers. Throws TimeoutError when it
  /// passed, and DistNetworkError at once when something that is not a store answers. `answer_time` bounds what a
  /// server answers at once within a waiting call: taking the request, its cancellation, the value once it is there.
  StoreClient(const std::string& host, std::uint16_t port, Deadline deadline,
              std::chrono::milliseconds answer_time = std::chrono::seconds(10));

  // ---- Answered at once, or not at all (set, append, multi_set, queue_push).
  void set(std::string_view key, std::string_view value, Deadline deadline);
  std::int64_t add(std::string_view key, std::int64_t delta, Deadline deadline);
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired, Deadline deadline);
  bool check(const std::vector<std::string>& keys, Deadline deadline);
  bool delete_key(std::string_view key, Deadline deadline);
  std::int64_t num_keys(Deadline deadline);
  void append(std::string_view key, std::string_view value, Deadline deadline);
  void multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values, Deadline deadline);
  void queue_push(std::string_view key, std::string_view value, Deadline deadline);
  std::optional<std::string> try_queue_pop(std::string_view key, Deadline deadline);
  std::int64_t queue_len(std::string_view key, Deadline deadline);
  std::vector<std::string> list_keys(Deadline deadline);
  /// The round-trip time. The server has received everything that was sent before.
  std::chrono::nanoseconds ping(Deadline deadline);

  // ---- Waiting: false or nullopt when the deadline passed first.
  bool wait(const std::vector<std::string>& keys, Deadline deadline);
  std::optional<std::string> get(std::string_view key, Deadline deadline);
  std::optional<std::vector<std::string>> multi_get(const std::vector<std::string>& keys, Deadline deadline);
  std::optional<std::string> queue_pop(std::string_view key, Deadline deadline);
  bool barrier(std::string_view key, std::int64_t world_size, Deadline deadline);

  /// "host:port", for messages.
  const std::string& endpoint() const { return connection_.endpoint(); }
  /// Whether the server is one of ours.
  bool has_extensions() const { return has_extensions_; }
  /// Whether the server answers pings (torch's since 2.5).
  bool has_ping() const { return has_ping_; }

 private:
  void connect(Deadline deadline);
  void shake_hands(Deadline deadline);
  bool say_hello(Deadline deadline);
  bool finish_wait(Deadline deadline);
  std::optional<std::string> finish_wait_for_value(Deadline deadline);
  template <typename Read>
  bool finish_wait(Deadline deadline, Read read_rest);

  Deadline answer_deadline() const { return Deadline::after(answer_time_); }

  StoreConnection connection_;
  std::chrono::milliseconds answer_time_;
  bool has_extensions_ = false;
  bool has_ping_ = true;
};

}  // namespace tensorplay::store
