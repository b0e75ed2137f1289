#pragma once

#include "runtime/base/fd.hpp"
#include "runtime/store/acceptor.hpp"
#include "runtime/store/spin_pacer.hpp"
#include "runtime/store/store_service.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::store {

/// The I/O around a StoreService: one epoll set, its connections, and the loop that serves them.
///
/// Thread rules: `run` belongs to one thread; everything else may be called from any thread, and waits for at most one
/// turn of the loop. A callback runs on the loop's thread with no lock held.
class ServerLoop {
 public:
  using Clock = std::chrono::steady_clock;

  struct Callbacks {
    /// The mailbox named has become non-empty.
    std::function<void(const std::string&)> on_filled;
    /// An agent knows of a later host of this job.
    std::function<void(std::uint64_t epoch)> on_newer_epoch;
    /// No agent has a will here: after watch_for_no_wills(), once.
    std::function<void()> on_no_wills;
  };

  ServerLoop(base::UniqueFd listener, ServiceOptions options, std::size_t max_connections, Callbacks callbacks);
  ~ServerLoop();

  void run();   ///< Serves until `stop`.
  void stop();  ///< Makes `run` return.

  void begin_round();
  void allow_hosts(std::vector<std::string> addresses);
  void push(std::string_view mailbox, std::string_view value);
  std::optional<std::string> try_pop(std::string_view mailbox);
  void watch(const std::string& mailbox, bool is_watched);
  void watch_for_no_wills();

  std::optional<Clock::time_point> first_use() const;
  std::size_t connection_count() const;
  std::size_t key_count() const;
  std::size_t waiter_count() const;

 private:
  struct Connection {
    base::UniqueFd fd;
    Session session;
    RequestParser parser;
    bool is_agents = false;       ///< Counted in agents_hosts_.
    bool wants_to_write = false;  ///< epoll has been asked to say when it can be written.
  };

  // All of these need the lock.
  void serve(std::uint64_t tag, std::uint32_t events);
  void accept_waiting(std::size_t most);
  void open(base::UniqueFd fd);
  std::uint32_t take_slot();
  bool is_outside_round(const Session& session) const;
  void note_agent(Connection& connection);
  void run_callbacks(std::unique_lock<std::mutex>& lock);
  void read_from(Connection& connection);                            ///< May close it.
  bool handle_input(Connection& connection, std::string_view data);  ///< False when it has closed it.
  bool flush(Connection& connection);                                ///< False when it cannot be written any more.
  void flush_dirty();
  void refuse(Connection& connection, const std::string& reason);
  void close(Connection& connection);
  void decide_wills();
  void pause_accepting();
  void resume_accepting();
  void want_to_write(Connection& connection, bool wants);
  Connection* find(std::uint64_t id);
  int sleep_ms() const;

  void wake();

  mutable std::mutex mutex_;
  StoreService service_;
  Acceptor acceptor_;
  base::UniqueFd epoll_;
  base::UniqueFd wake_;
  Callbacks callbacks_;
  std::vector<std::unique_ptr<Connection>> connections_;  ///< By the lower half of the id.
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> generations_;  ///< The upper half of the id last used in each slot.
  std::vector<std::string> allowed_hosts_;
  std::map<std::string, int> agents_hosts_;  ///< From how many connections of agents each address is known.
  std::optional<std::uint64_t> newer_epoch_;
  bool is_watching_wills_ = false;
  std::unique_ptr<char[]> buffer_;
  std::vector<Session*> flushing_;  ///< Only within flush_dirty; kept for its memory.
  std::size_t max_connections_;
  std::size_t connection_count_ = 0;
  std::optional<Clock::time_point> accept_again_at_;  ///< While accepting is paused.
  Clock::time_point now_;                             ///< Of this turn of the loop.
  SpinPacer pacer_;                                   ///< The loop's thread only.
  bool is_stopping_ = false;
};

}  // namespace tensorplay::store
