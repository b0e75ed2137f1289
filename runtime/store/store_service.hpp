#pragma once

#include "runtime/store/authenticator.hpp"
#include "runtime/store/key_table.hpp"
#include "runtime/store/mailbox_table.hpp"
#include "runtime/store/output_queue.hpp"
#include "runtime/store/request_parser.hpp"
#include "runtime/store/will_table.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorplay::store {

struct ServiceOptions {
  bool has_agent_table = false;
  std::string run_id;
  std::string user;
  std::uint64_t epoch = 0;
  std::shared_ptr<const Authenticator> authenticator = nullptr;  ///< With one, agents have to prove themselves.
  /// An agent has said hello with an epoch later than the server's own: another host has taken over.
  std::function<void(std::uint64_t epoch)> on_newer_epoch = {};
};

/// What the service knows of one connection. The owner of the connection owns it, and keeps it until after `closed`.
struct Session {
  std::uint64_t id = 0;     ///< Never used again by another connection.
  std::uint64_t round = 0;  ///< In which round it was opened.
  std::string agent;        ///< From its hello.
  std::string peer;         ///< The address it comes from, in digits.
  Role role = Role::kClient;
  bool has_tried_hello = false;
  bool said_hello = false;
  std::unique_ptr<HelloTranscript> challenge;  ///< Its hello fits; its proof is awaited.
  bool used_workers_table = false;
  bool is_outside_round = false;  ///< Its host has no place in the round: no workers' table for it.
  bool is_waiting = false;        ///< For a key, a queue, a barrier or a mailbox's entry.
  bool is_dirty = false;          ///< In the list that take_dirty gives.
  OutputQueue output;
};

/// Answers requests: a whole store server but for its sockets, its clock and its thread.
///
/// Replies go into the sessions' output queues, also into those of other sessions whose wait has ended; take_dirty says
/// into whose. A request that must not be answered gives the reason for closing its connection instead.
/// A core without I/O. Thread rules: none of its own; one user at a time.
class StoreService {
 public:
  using TimePoint = WillTable::TimePoint;

  /// A peer that lets more than this pile up and asks for still more is closed.
  static constexpr std::size_t kMaxUnsentBytes = 16 << 20;

  explicit StoreService(ServiceOptions options);

  void opened(Session& session);
  void closed(Session& session, TimePoint now);

  /// Handles one request, whose strings it may take. `unix_micros` is the wall clock, for peers that compare clocks.
  /// Returns nullopt, or why the connection must be closed once its output is sent.
  std::optional<std::string> handle(Session& session, Request& request, TimePoint now, std::int64_t unix_micros);

  /// Replaces the content of `sessions` by those that have got output since the last call.
  void take_dirty(std::vector<Session*>& sessions) {
    sessions.clear();
    sessions.swap(dirty_);
  }
  bool has_dirty() const noexcept { return !dirty_.empty(); }

  /// Empties the workers' table. The caller has to close every session that used it; a session opened before this call
  /// cannot use it afterwards.
  void begin_round();
  std::uint64_t round() const noexcept { return round_; }
  std::optional<TimePoint> first_use() const noexcept { return first_use_; }
  const KeyTable& keys() const noexcept { return keys_; }

  // ---- The agents' table, from within the process that hosts it.
  void push(std::string_view mailbox, std::string value);
  std::optional<std::string> try_pop(std::string_view mailbox) { return mailboxes_.try_pop(mailbox); }
  MailboxTable& mailboxes() noexcept { return mailboxes_; }

  // ---- Wills. See WillTable: read what is there on the `due` connections first.
  std::vector<std::uint64_t> due_wills(TimePoint now) const { return wills_.due(now); }
  void tick(TimePoint now);
  std::optional<TimePoint> next_tick() const { return wills_.next_tick(); }
  std::size_t will_count() const noexcept { return wills_.size(); }

 private:
  using Refusal = std::optional<std::string>;

  Refusal handle_worker(Session& session, Request& request, TimePoint now);
  Refusal handle_keys(Session& session, Request& request);
  Refusal handle_queues(Session& session, Request& request);
  Refusal handle_wait(Session& session, Request& request, WaitKind kind);
  Refusal handle_hello(Session& session, Request& request);
  Refusal handle_prove(Session& session, const Request& request);
  Refusal handle_agent(Session& session, Request& request, TimePoint now, std::int64_t unix_micros);
  Refusal check_keys(const Request& request) const;
  void push_loss(WillTable::Loss loss);
  void cancel_wait(Session& session);
  void deliver_releases();
  void deliver_mail();
  void mark_dirty(Session& session);
  Session* find(std::uint64_t id) const;

  ServiceOptions options_;
  KeyTable keys_;
  MailboxTable mailboxes_;
  WillTable wills_;
  std::unordered_map<std::uint64_t, Session*> sessions_;
  std::vector<Session*> dirty_;
  Releases releases_;                    ///< Empty between calls; kept for its memory.
  MailboxTable::Deliveries deliveries_;  ///< The same.
  std::uint64_t round_ = 0;
  std::optional<TimePoint> first_use_;
};

}  // namespace tensorplay::store
