/// Who is in the world, decided from events alone. No clock, no sockets, no threads: the same state and the same event
/// give the same effects, on every machine and in every test (docs/rendezvous.md has the picture).
///
///   forming --(enough nodes)--> running --(failure, join, loss, leave)--> stopping --(all stopped)--> forming ...
///      |                           |                                         |
///      +--(deadline)--> finished <-+--(all succeeded)                        +--(no restart left)--> finished
#pragma once

#include "rendezvous/failure_judgement.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/rank_assignment.hpp"
#include "rendezvous/restart_policy.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace tensorplay::rendezvous {

struct MembershipOptions {
  int min_nodes = 1;
  int max_nodes = 1;
  int max_restarts = 0;
  std::optional<std::chrono::nanoseconds> restart_window =
      std::nullopt;  ///< Restarts come back after this; nullopt: never.
  std::chrono::nanoseconds join_timeout = std::chrono::seconds(600);  ///< For MIN nodes to come, each time.
  std::chrono::nanoseconds last_call = std::chrono::seconds(30);      ///< After MIN nodes, for more, the first time.
  std::chrono::nanoseconds replacement_wait{0};                       ///< The same in later rounds, after a loss.
};

/// An agent that went without a word. Its workers are gone at `workers_gone_at` at the latest (its lease and the time
/// its guardian needs to kill): no new round starts before.
struct Lost {
  AgentId agent;
  std::string why;
  TimePoint workers_gone_at{};
};

/// Time has passed.
struct Tick {};

using Event = std::variant<Joined, Started, Stopped, Failed, Succeeded, Leaving, Lost, Tick>;

/// One order, for one or many agents: a stop or a finish is the same for all, and is encoded once.
struct AddressedOrder {
  std::vector<AgentId> agents;
  Order order;
};

/// Something a person may want to know. Given once, when it becomes so.
struct Note {
  std::string text;
  bool is_notable = false;  ///< Shown by default; the others when asked for.
};

struct Effects {
  std::vector<AddressedOrder> orders;
  std::vector<Note> notes;
};

/// The state machine. A transition that concerns everybody costs O(nodes) (sorting apart), every other report O(1).
/// Thread rules: one thread at a time.
class Membership {
 public:
  enum class Phase { kForming, kRunning, kStopping, kFinished };

  explicit Membership(MembershipOptions options);

  /// Applies one event that happened at `now` (never earlier than the one before); returns what must be done about it.
  /// Reports of an earlier round and of agents that are not known change nothing.
  Effects apply(const Event& event, TimePoint now);

  /// The next time at which `apply(Tick{})` could change anything; nullopt when only events can.
  std::optional<TimePoint> next_tick() const;

  Phase phase() const { return phase_; }
  int round() const { return round_; }  ///< -1 before the first.
  int restart_count() const { return policy_.spent(); }
  /// The agents of the current or last round, by group rank, those lost since included.
  const std::vector<AgentId>& members() const { return members_; }

 private:
  enum class Part { kWaiting, kRunning, kSucceeded };
  struct Node {
    Joined info;
    std::uint64_t arrival = 0;
    int previous_position = -1;
    Part part = Part::kWaiting;
    bool is_leaving = false;
  };

  void on(const Joined& joined);
  void on(const Started& started);
  void on(const Stopped& stopped);
  void on(const Failed& failed);
  void on(const Succeeded& succeeded);
  void on(const Leaving& leaving);
  void on(const Lost& lost);
  void on(const Tick& tick);

  void remove(const AgentId& agent, const std::string& what);
  void consider_close();
  void start_round();
  void begin_stop(const std::string& why);
  void member_done(Node& node);
  void settle();
  void form_again();
  void finish(int exit_code, const std::string& why, Verdict verdict = {});
  void tell(const FinishOrder& order);
  void note(std::string text, bool is_notable = false);
  void note_status(int nodes_here, std::string text);
  Node* find(const AgentId& agent);
  Node* find_member(const AgentId& agent, int round);
  std::string names_of_waiting() const;

  MembershipOptions options_;
  RestartPolicy policy_;
  Phase phase_ = Phase::kForming;
  int round_ = -1;
  std::unordered_map<AgentId, Node> nodes_;
  std::vector<AgentId> members_;
  std::uint64_t arrivals_ = 0;
  int waiting_ = 0;     ///< Nodes whose part is kWaiting.
  int unfinished_ = 0;  ///< Members of the running round that have not succeeded.
  int unstopped_ = 0;   ///< Members of the stopping round whose workers may live.

  // Forming.
  std::optional<TimePoint> join_deadline_;
  std::optional<TimePoint> close_at_;
  TimePoint not_before_{};
  int nodes_noted_ = -1;  ///< What the last line about waiting said, so that it is said once.

  // Stopping.
  std::map<int, WorkerFailure> failures_;  ///< By rank; the report after the stop replaces the first one.
  bool membership_changed_ = false;        ///< A node came or went in this round: victims alone are no failure.
  std::string unkillable_on_;              ///< Host where a process outlived SIGKILL.

  std::optional<FinishOrder> end_;

  // During apply().
  TimePoint now_{};
  Effects* effects_ = nullptr;
};

}  // namespace tensorplay::rendezvous
