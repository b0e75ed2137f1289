/// What agents and the leader tell each other: reports go up, orders come down. Values only; `to_json`/`from_json`
/// in messages.cpp give them their form on the wire, and reading is tolerant of nothing: a malformed message throws
/// InvalidArgument.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tensorplay::rendezvous {

/// Names one agent of one process: host, pid and a random part. Who gave up its store joins anew under the next name
/// (ID, ID#2, ID#3, ...), so that nothing that was said to it before can reach it.
using AgentId = std::string;

AgentId next_session(const AgentId& agent);
/// The same for all names of one process.
std::string process_of(const AgentId& agent);
/// 1, 2, 3, ...
std::uint64_t session_of(const AgentId& agent);

/// How a worker ended, told once.
struct WorkerFailure {
  int rank = -1;  ///< Global rank.
  int local_rank = -1;
  int pid = 0;
  std::string host;
  int exit_code = 0;                    ///< As wait(2) gives it; 0 when a signal ended it.
  int signal = 0;                       ///< 0 when it exited.
  bool stopped_by_us = false;           ///< Our own stop signal was sent before it ended.
  bool dumped_core = false;             ///< A signal ended it and the kernel wrote a core file.
  bool out_of_memory = false;           ///< The kernel's OOM killer took it or a child of it.
  bool is_startup_failure = false;      ///< execve itself failed: never restarted.
  double ended_at = 0;                  ///< Unix time, seconds, when its end was seen.
  std::optional<double> thrown_at;      ///< Unix time, seconds, of the throw, from its error file.
  double runtime_seconds = 0;           ///< From its start to its end.
  std::string message;                  ///< From its error file; empty when there is none.
  std::string traceback;                ///< From its error file: call stack as text; may be empty.
  std::string error_file;               ///< The file's path; empty when there is none.
  std::string log_file;                 ///< Its stderr.log; empty when not redirected.
  std::vector<std::string> last_lines;  ///< The last lines of its stderr.
  int followed_from = -1;               ///< Rank whose failure caused this one; -1: none, or the verdict is not in.
  bool operator==(const WorkerFailure&) const = default;
};

// ---- Reports ----------------------------------------------------------------------------------------------------

/// A world an agent was a member of, as its start order told it.
struct PastWorld {
  std::uint64_t epoch = 0;
  int round = -1;
  int restart_count = 0;
  int group_rank = -1;  ///< Its own place.
  int group_world_size = 0;
  int recent_restarts = 0;     ///< Those of the restarts that still count against the budget.
  int fruitless_restarts = 0;  ///< Restarts in a row that made no progress.
  bool is_confirmed = false;   ///< Enough members know of it: no world before it matters any more.
  bool operator==(const PastWorld&) const = default;
};

struct Joined {
  AgentId agent;
  std::string host;                    ///< For people and for the natural order of ranks.
  std::vector<std::string> addresses;  ///< Every address by which others may reach it, best first.
  int nproc = 1;
  std::string role = "default";
  std::optional<int> rank_hint;  ///< --node-rank, or the scheduler's node id.
  bool is_store_host = false;
  std::uint16_t port = 0;  ///< Already bound: MASTER_PORT should it hold RANK 0.
  /// What it was part of before, oldest first (see WorldHistory): how a successor of a lost host learns it. An agent
  /// says joined only when no worker of any of them lives on it.
  std::vector<PastWorld> past = {};
  std::uint64_t seen_epoch = 0;  ///< The highest epoch of a store that it joined before; 0: none.
  bool operator==(const Joined&) const = default;
};

/// The answer to a start order that wants confirmation: the agent will tell of this world wherever it joins later.
struct Started {
  AgentId agent;
  int round = 0;
  bool operator==(const Started&) const = default;
};

struct Stopped {
  AgentId agent;
  int round = 0;
  std::vector<WorkerFailure> failures;  ///< All workers of the round that did not end well, victims included.
  bool left_unkillable = false;         ///< A process there outlived SIGKILL: the world cannot be restarted.
  bool operator==(const Stopped&) const = default;
};

struct Failed {
  AgentId agent;
  int round = 0;
  WorkerFailure failure;
  bool operator==(const Failed&) const = default;
};

struct Succeeded {
  AgentId agent;
  int round = 0;
  bool operator==(const Succeeded&) const = default;
};

struct Leaving {
  AgentId agent;
  std::string why;
  bool workers_gone = true;  ///< False: its workers are still being stopped; a second report follows.
  bool operator==(const Leaving&) const = default;
};

/// Left with the store, which puts it into the inbox when the agent is lost, and adds how (see Leader).
struct Will {
  AgentId agent;
  double keep_alive_seconds = 15;  ///< So long after its last answer the agent kills its workers itself,
  double kill_seconds = 2;         ///< and so long that takes.
  bool operator==(const Will&) const = default;
};

using Report = std::variant<Joined, Started, Stopped, Failed, Succeeded, Leaving, Will>;

// ---- Orders -----------------------------------------------------------------------------------------------------

struct StartOrder {
  int round = 0;
  int restart_count = 0;
  int world_size = 1;
  int group_rank = 0;  ///< This node's index.
  int group_world_size = 1;
  int first_rank = 0;  ///< Global rank of this node's local rank 0.
  int first_role_rank = 0;
  int role_world_size = 1;
  std::uint64_t store_generation = 0;
  std::string master_addr;
  std::uint16_t master_port = 0;
  bool serves_workers_store = false;  ///< This agent holds RANK 0.
  std::vector<std::string> member_addresses =
      {};                   ///< For the one that serves the workers' store: who may use it. Empty: all.
  std::uint64_t epoch = 1;  ///< Of the leader; grows with every take-over, so (epoch, round) names a world.
  int recent_restarts = 0;  ///< As in PastWorld.
  int fruitless_restarts = 0;
  bool wants_confirmation = false;  ///< Another host may take over: say started.
  bool operator==(const StartOrder&) const = default;
};

struct StopOrder {
  int round = 0;
  std::string why;
  bool at_once = false;  ///< No grace, also for workers that are being stopped already: another world may begin.
  bool operator==(const StopOrder&) const = default;
};

struct FinishOrder {
  int exit_code = 0;
  std::string why;
  std::optional<WorkerFailure> root_cause;
  std::vector<WorkerFailure> failures;  ///< Of the last round, whole world, root cause first, at most 256.
  int more_failures = 0;                ///< How many more there were.
  int round = 0;
  int restart_count = 0;
  bool operator==(const FinishOrder&) const = default;
};

/// What an agent may want to tell its person while it waits.
struct NewsOrder {
  std::string text;           ///< "2 of 4 nodes are here (n1 n2), waiting for n3 n4"
  bool is_status = false;     ///< The state of the wait, to be shown in place with a clock; else a line of its own.
  bool is_notable = false;    ///< A line that is shown by default.
  double waited_seconds = 0;  ///< When is_status: for how long the leader has waited when it said this,
  double limit_seconds = 0;   ///< and how long it will wait; 0: for ever.
  bool operator==(const NewsOrder&) const = default;
};

/// The world of this round is the last one whatever happens: earlier ones may be forgotten.
struct ConfirmedOrder {
  int round = 0;
  bool operator==(const ConfirmedOrder&) const = default;
};

using Order = std::variant<StartOrder, StopOrder, FinishOrder, NewsOrder, ConfirmedOrder>;

std::string encode(const Report& report);
std::string encode(const Order& order);
Report decode_report(const std::string& text);
Order decode_order(const std::string& text);

}  // namespace tensorplay::rendezvous
