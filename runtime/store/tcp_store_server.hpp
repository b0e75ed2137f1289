#pragma once

#include "runtime/base/fd.hpp"
#include "runtime/store/authenticator.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::store {

struct TCPStoreServerOptions {
  std::string host = "127.0.0.1";  ///< Address or name to bind; "::" for IPv6 and IPv4, "0.0.0.0" for all of IPv4.
  std::uint16_t port = 0;          ///< 0: any free port.
  base::UniqueFd listen_fd;        ///< A bound (and perhaps listening) socket to use instead.
  bool has_agent_table = false;    ///< Two tables: agents' mailboxes beside the workers' `/...` and `init/`.
  std::string run_id;              ///< What our own ends' hello must name.
  std::string user;                ///< The same; empty: the effective user's name.
  std::uint64_t epoch = 0;
  std::shared_ptr<const Authenticator> authenticator;  ///< Agents have to prove that they know the job's secret.
  std::size_t max_connections = 20'000;
};

/// Serves the TCPStore protocol from a thread of its own. Asleep in epoll when nothing happens: an idle server uses no
/// CPU. What a peer sends costs that connection at most, and bounded memory.
/// Thread rules: every method may be called from any thread, also from within a callback of on_push. The destructor
/// must not be called from a callback.
class TCPStoreServer {
 public:
  /// Binds, listens and starts the thread; throws SocketError when the address cannot be had.
  explicit TCPStoreServer(TCPStoreServerOptions options);
  ~TCPStoreServer();  ///< Closes every connection and joins the thread.

  std::uint16_t port() const;

  /// Empties the workers' table and closes every connection that has used it, before it returns: nothing of an old
  /// round can be read or written in a new one. A connection made before this call, accepted or not, cannot use the
  /// workers' table after it. So call it when this node's workers have ended and before the leader is told so: workers
  /// of the new round may connect as soon as the leader lets any node start.
  void begin_round();

  /// From now on, and over rounds, the workers' table is for peers at these addresses (in digits) only, and at those
  /// that an agent's connection comes from; connections of others that have used it are closed. Empty: for everybody,
  /// as at first.
  void allow_hosts(std::vector<std::string> addresses);

  // ---- The agents' table, for the process that hosts the server. Queues only: the mailboxes of agents and leader.

  /// Appends to a queue, waking whoever waits for it.
  void push(std::string_view queue, std::string_view value);
  /// Takes the oldest value, if any.
  std::optional<std::string> try_pop(std::string_view queue);
  /// Calls `callback` on the server's thread each time `queue` becomes non-empty, and once if it is not empty now; an
  /// empty function ends that, and once this call has returned the old callback is not running and never runs again
  /// (unless this is called from within it).
  void on_push(std::string_view queue, std::function<void()> callback);

  /// Calls `callback` on the server's thread when an agent says hello with a later epoch than this server's: another
  /// host has taken over. One at a time, as with on_push.
  void on_newer_epoch(std::function<void(std::uint64_t epoch)> callback);
  /// Calls `callback` on the server's thread, once, as soon as no agent has a will here: all have left or are lost.
  void on_no_wills(std::function<void()> callback);

  /// When the workers' table was first used in this round, for the restart timeline.
  std::optional<std::chrono::steady_clock::time_point> first_use() const;

  std::size_t connection_count() const;  ///< Connections open now.
  std::size_t key_count() const;         ///< Keys in the workers' table.
  std::size_t waiter_count() const;      ///< Connections that wait for something in the workers' table.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorplay::store
