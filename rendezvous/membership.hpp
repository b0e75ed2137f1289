/// Who is in the world, decided from events alone. No clock, no sockets, no threads: the same state and the same event
/// give the same effects, on every machine and in every test (docs/rendezvous.md has the picture).
///
///   forming --(enough nodes)--> running --(failure, join, loss, leave)--> stopping --(all stopped)--> forming ...
///      |                           |                                         |
///      +--(deadline)--> finished <-+--(all succeeded)                        +--(no restart left)--> finished
///
/// In any phase it steps down when another host leads the job on. Its parts: membership.cpp has the events,
/// membership_forming.cpp when a round begins, membership_news.cpp what people are told.
#pragma once

#include "rendezvous/failure_judgement.hpp"
#include "rendezvous/lineage.hpp"
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
  RestartRules restarts = {};
  std::chrono::nanoseconds join_timeout = std::chrono::seconds(600);  ///< For MIN nodes to come, each time.
  std::chrono::nanoseconds last_call = std::chrono::seconds(30);      ///< After MIN nodes, for more, the first time.
  std::chrono::nanoseconds replacement_wait{0};                       ///< The same in later rounds, after a loss.

  // For people.
  std::string place = {};                        ///< "n1:29400": where the nodes meet; may be empty.
  std::vector<std::string> expected_hosts = {};  ///< By node index, where it is known who will come.
  bool expects_node_ranks = false;               ///< Every node says its rank, from 0 to MAX - 1 (static).

  // Take-over (docs/rendezvous.md).
  bool can_be_succeeded = false;  ///< Another host may lead this job on: an endpoint list, etcd.
  std::uint64_t epoch = 1;
  bool is_successor = false;  ///< This host has taken over from another.
  /// An agent that hears nothing for so long stops its workers; who says nothing for so long is lost.
  std::chrono::nanoseconds lease = std::chrono::seconds(15);
  std::chrono::nanoseconds kill_time = std::chrono::seconds(2);  ///< So long that takes.
};

/// How late a leader may find out that it stood still, or hear of a closed connection, besides its lease.
std::chrono::nanoseconds stall_limit(const MembershipOptions& options);

/// For how long a new quorum must have been here before it may begin a round: one lease until its old leader has
/// missed it, another until those have stopped that this one cannot tell, and the time to kill.
std::chrono::nanoseconds settle_time(const MembershipOptions& options);

/// An agent that went without a word. Its workers are gone at `workers_gone_at` at the latest (its lease and the time
/// its guardian needs to kill): no new round starts before.
struct Lost {
  AgentId agent;
  std::string why;
  TimePoint workers_gone_at{};
  bool is_certain = false;  ///< Its process is dead, and cannot be part of another world.
};

/// Another host leads this job on: this one steps down.
struct Succession {
  std::string by;  ///< "n2:29400"
};

/// Time has passed.
struct Tick {};

using Event = std::variant<Joined, Started, Stopped, Failed, Succeeded, Leaving, Lost, Succession, Tick>;

/// One order, for one or many agents: a stop or a finish is the same for all, and is encoded once.
struct AddressedOrder {
  std::vector<AgentId> agents;
  Order order;
};

/// For the leader's log: what no agent is told. Everything that people shall see goes to the agents as news.
struct Note {
  std::string text;
};

struct Effects {
  std::vector<AddressedOrder> orders;
  std::vector<Note> notes;
};

/// How a host that leads a job stands among those that may lead it too.
struct Standing {
  std::uint64_t epoch = 0;
  int round = -1;
  bool has_quorum = false;
  bool operator==(const Standing&) const = default;
};

/// The state machine. A transition that concerns everybody costs O(nodes) (sorting apart), every other report O(1).
/// Thread rules: one thread at a time.
class Membership {
 public:
  enum class Phase { kForming, kRunning, kStopping, kFinished, kSteppedDown };

  explicit Membership(MembershipOptions options);

  /// Applies one event that happened at `now` (never earlier than the one before); returns what must be done about it.
  /// Reports of an earlier round and of agents that are not known change nothing.
  Effects apply(const Event& event, TimePoint now);

  /// The next time at which `apply(Tick{})` could change anything; nullopt when only events can.
  std::optional<TimePoint> next_tick() const;

  Phase phase() const { return phase_; }
  int round() const { return round_; }  ///< -1 before the first.
  std::uint64_t epoch() const { return epoch_; }
  int restart_count() const { return policy_.spent(); }
  /// The agents of the current or last round, by group rank, those lost since included.
  const std::vector<AgentId>& members() const { return members_; }
  Standing standing() const;
  /// It waits for members that may have gone on elsewhere: worth a look at the other places where they could be.
  bool is_waiting_for_quorum() const { return phase_ == Phase::kForming && !has_quorum(); }

 private:
  /// Beyond this many nodes news go out no more often.
  static constexpr std::chrono::seconds kNewsInterval{1};
  static constexpr std::size_t kFewNodes = 16;

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
  void on(const Succession& succession);
  void on(const Tick& tick);

  // membership.cpp
  void welcome(const Joined& joined);
  bool replaces_an_earlier_one(const Joined& joined);
  void remove(const AgentId& agent, const std::string& what, bool for_good);
  void begin_stop(const std::string& why, bool at_once = false);
  void stop_at_once(const std::string& why);
  void stop_unless_quorum(const std::string& why);
  void member_done(Node& node);
  void settle();
  void finish(int exit_code, const std::string& why, Verdict verdict = {});
  Node* find(const AgentId& agent);
  Node* find_member(const AgentId& agent, int round);

  // membership_forming.cpp
  void begin_forming();
  void consider_close();
  void start_round();
  bool has_quorum() const { return !lineage_ || lineage_->has_quorum(); }
  bool is_first_round() const { return round_ < 0 && last_size() == 0; }
  int last_size() const;
  int wanted() const;
  TimePoint start_not_before() const;

  // membership_news.cpp
  void note(std::string text) { effects_->notes.push_back({std::move(text)}); }
  void tell_all(std::string line);
  void status_changed() { is_status_stale_ = phase_ == Phase::kForming; }
  void send_news(bool at_once);
  void send_status();
  std::string status_text() const;
  std::string lack_of_quorum() const;
  std::string deadline_text() const;
  std::string names_of_waiting() const;
  std::string names_of_missing() const;

  MembershipOptions options_;
  RestartPolicy policy_;
  Phase phase_ = Phase::kForming;
  std::uint64_t epoch_;
  std::uint64_t seen_epoch_ = 0;  ///< The highest that an agent has been under.
  int seen_round_ = -1;           ///< The highest that an agent has been in.
  int round_ = -1;
  std::unordered_map<AgentId, Node> nodes_;
  std::unordered_map<std::string, AgentId> sessions_;  ///< By process: under which name it is here.
  std::vector<AgentId> members_;
  std::optional<Lineage> lineage_;  ///< Where another host may lead the job on.
  std::uint64_t arrivals_ = 0;
  int waiting_ = 0;     ///< Nodes whose part is kWaiting.
  int unfinished_ = 0;  ///< Members of the running round that have not succeeded.
  int unstopped_ = 0;   ///< Members of the stopping round whose workers may live.

  // Forming.
  TimePoint forming_since_{};
  std::optional<TimePoint> join_deadline_;
  std::optional<TimePoint> close_at_;
  TimePoint call_began_{};
  TimePoint not_before_{};

  // Running: how long since the last restart, rounds that others joined or left added up.
  TimePoint started_at_{};
  std::chrono::nanoseconds ran_{0};

  // Stopping.
  std::map<int, WorkerFailure> failures_;  ///< By rank; the report after the stop replaces the first one.
  bool membership_changed_ = false;        ///< A node came or went in this round: victims alone are no failure.
  bool is_stopping_at_once_ = false;
  std::string unkillable_on_;  ///< Host where a process outlived SIGKILL.

  std::optional<FinishOrder> end_;

  // News.
  std::vector<std::string> lines_;  ///< Not sent yet.
  std::size_t more_lines_ = 0;      ///< Too many to be kept.
  bool is_status_stale_ = false;
  std::string status_sent_;
  std::optional<TimePoint> news_sent_at_;

  // During apply().
  TimePoint now_{};
  Effects* effects_ = nullptr;
};

}  // namespace tensorplay::rendezvous
