#pragma once

#include "tensorplay/distributed/store.hpp"

#include <optional>

namespace tensorplay::distributed {

struct TCPStoreOptions {
  /// Where the server is: a name or address. The hosting process binds loopback when this is a loopback address or
  /// "localhost", else all addresses.
  std::string host = {};
  std::uint16_t port = 29500;  ///< 0, for the hosting process: any free one; port() tells which.
  /// How many stores will connect in all. Each counts itself in; the hosting one waits for all of them.
  std::optional<int> world_size = std::nullopt;
  bool is_master = false;  ///< Host the server in this process.
  Store::Timeout timeout = Store::kDefaultTimeout;
  bool wait_for_workers = true;  ///< False: neither count nor wait.
  /// Let a second hosting store on the same port of this process use the first one's server.
  bool multi_tenant = false;
  /// A bound (and perhaps listening) socket for the server to use; the store takes it over. -1: none.
  int listen_fd = -1;
};

/// A store on a server that all processes reach over TCP, ours or torch's: the usual way for ranks to find each other.
///
/// With `is_master` the server lives in this process, for as long as this store and its clones do. Where the launcher
/// says that its own server is to be used (TORCHELASTIC_USE_AGENT_STORE, and MASTER_PORT is this port), a port that
/// is taken makes the would-be host a client.
/// One connection, one request at a time: a thread that waits holds up the others; clone() opens a connection.
/// Blocking: the constructor connects and shakes hands within `timeout`, trying again while nobody answers. Requests
/// that need no waiting are given the timeout too, 30 s at least.
/// Errors: a wait beyond the timeout is StoreTimeoutError, and the store stays usable; anything wrong with the
/// connection is DistNetworkError with host, port, request, key and reason, and every later call fails too. Keys above
/// 8192 bytes and values above 8 MiB are DistStoreError. A server closes the connection when add meets a value that is
/// no number.
/// Thread rules: as for Store.
class TP_API TCPStore final : public Store {
 public:
  static constexpr std::uint16_t kDefaultPort = 29500;

  explicit TCPStore(TCPStoreOptions options);
  ~TCPStore() override;

  using Store::barrier;
  using Store::wait;
  /// Not acknowledged: the value is on its way when this returns, and there before any later request of this store.
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, Timeout timeout) override;
  bool delete_key(std::string_view key) override;
  std::int64_t num_keys() override;
  void append(std::string_view key, std::string_view value) override;
  std::vector<std::string> multi_get(const std::vector<std::string>& keys) override;
  void multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values) override;
  void queue_push(std::string_view key, std::string_view value) override;
  std::string queue_pop(std::string_view key, bool block = true) override;
  std::int64_t queue_len(std::string_view key) override;
  std::vector<std::string> list_keys() override;
  /// One request on servers that know it (ours; torch's since 2.12); on others it ends the connection.
  void barrier(std::string_view key, std::int64_t world_size, Timeout timeout) override;
  bool has_extended_api() const override { return true; }
  /// A connection of its own to the same server, not counted as a worker. Keeps a hosted server alive too.
  std::shared_ptr<Store> clone() override;
  Timeout timeout() const override;
  void set_timeout(Timeout timeout) override;

  const std::string& host() const;
  std::uint16_t port() const;
  bool is_hosting() const;

  /// Asks the server for a sign of life and returns the round-trip time. All that this store sent before has arrived.
  std::chrono::nanoseconds ping();

 private:
  struct Impl;
  explicit TCPStore(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorplay::distributed
