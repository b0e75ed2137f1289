/// Whole hosts in one thread, on a clock of their own: agents with leases whose guardians kill their workers, stores
/// with the real WillTable and the real Membership, a network that delays, reorders, repeats, cuts and heals, hosts
/// that die and freeze. Everything comes from one seed (docs/scenarios.md).
#pragma once

#include "rendezvous/membership.hpp"
#include "rendezvous/world_history.hpp"
#include "runtime/store/will_table.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorplay::rendezvous::simulation {

using Ms = std::chrono::milliseconds;

/// A promise that was not kept; what() says which, and the seed.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What happened in a run, for those who read the numbers.
struct Tally {
  int steps = 0;
  int rounds = 0;
  int rounds_of_successors = 0;
  int restarts = 0;
  int take_overs = 0;
  int step_downs = 0;
  int stops_for_lack_of_quorum = 0;
  int succeeded = 0;  ///< Agents that ended with code 0,
  int gave_up = 0;    ///< with 75,
  int failed = 0;     ///< with another.
  void add(const Tally& other);
};

struct Rules {
  std::uint64_t seed = 0;
  int steps = 3000;      ///< Of chaos; afterwards all heals and an end must be reached.
  bool is_loud = false;  ///< Prints what happens.
};

class Simulation {
 public:
  explicit Simulation(Rules rules);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Throws Broken.
  Tally run();

 private:
  enum class State { kSearching, kConnecting, kWaiting, kRunning, kIdle, kStopping, kDone };

  struct Store;

  /// Between an agent's session and a store; each direction keeps its order.
  struct Connection {
    std::uint64_t id = 0;
    int agent_host = 0;
    int store_host = 0;
    std::uint64_t store_instance = 0;
    AgentId agent;
    bool is_open = true;           ///< The agent's end,
    bool is_open_at_store = true;  ///< and the store's.
    std::deque<std::function<void()>> queue[2];
    TimePoint last[2] = {};
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  struct Agent {
    AgentId id;
    State state = State::kSearching;
    WorldHistory history;
    std::uint64_t seen_epoch = 0;
    std::optional<int> lost_endpoint;
    std::uint64_t token = 0;
    ConnectionPtr connection;  ///< Null when the store is its own, or none.
    std::uint64_t store_instance = 0;
    int store_host = -1;
    bool has_joined = false;  ///< In this session.
    TimePoint lease_until{};
    TimePoint search_began{};
    std::deque<std::pair<std::uint64_t, Report>> outbox;  ///< Not known to have arrived.
    std::uint64_t sent = 0;
    StartOrder order;
    int failures_to_tell = 0;
    bool is_leaving = false;
    bool is_cut_off = false;
    std::optional<FinishOrder> finish;
  };

  struct Host {
    int index = 0;
    int nproc = 1;
    int endpoint = -1;
    bool is_frozen = false;
    TimePoint frozen_since{};
    TimePoint ended_at{};    ///< The last agent there.
    std::uint64_t life = 0;  ///< Of the process; what belongs to an earlier one is void.
    std::unique_ptr<Agent> agent;
    std::unique_ptr<Store> store;
    std::deque<std::pair<std::uint64_t, Report>> inbox;  ///< What its own agent has said, and to which store.
    // Its workers outlive the agent.
    bool has_workers = false;
    StartOrder workers;
    std::uint64_t workers_of = 0;  ///< Counts spawns.
  };

  struct Mail {
    std::deque<std::pair<std::uint64_t, Order>> orders;
    std::uint64_t count = 0;
    std::uint64_t sent_up_to = 0;
  };

  struct Store {
    int host = 0;
    std::uint64_t instance = 0;
    bool is_closing = false;
    store::WillTable wills;
    std::map<std::uint64_t, ConnectionPtr> connections;
    std::map<AgentId, TimePoint> heard;
    std::map<AgentId, Mail> mail;
    std::optional<Membership> core;
    std::optional<TimePoint> core_tick;
    std::optional<TimePoint> will_tick;
    Membership::Phase phase = Membership::Phase::kForming;
    bool had_quorum = true;
  };

  // simulation.cpp: clock, chaos, promises.
  void at(TimePoint when, std::function<void()> what);
  void after(Ms delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  void on_host(int host, Ms delay, std::function<void(Host&)> what);
  void on_agent(int host, Ms delay, std::function<void(Host&)> what);
  bool run_one();
  void play();
  void calm_down();
  void check();
  void check_start(const Effects& effects);
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  void say(const std::string& line) const;
  [[noreturn]] void broken(const std::string& promise) const;
  bool is_linked(int a, int b) const { return a == b || !cut_.contains({std::min(a, b), std::max(a, b)}); }
  bool may_start(const Host& host) const;
  void cut_in_two();
  void cut_off_the_leader();
  void peel();
  void cut_for(std::set<std::pair<int, int>> links, Ms time);
  static std::set<std::pair<int, int>> links_of(int host, const std::set<int>& others);
  bool everybody_is_done() const;

  // simulated_network.cpp
  Ms delay();
  void send(const ConnectionPtr& connection, int direction, std::function<void()> message);
  void pump(const ConnectionPtr& connection, int direction);
  void close_by_agent(Agent& agent);
  void break_connection(const ConnectionPtr& connection);

  // simulated_agent.cpp
  void start_agent(Host& host);
  void search(Host& host);
  void look(Host& host);
  void connect(Host& host, int store_host, bool is_again);
  void ping(Host& host);
  void watch_lease(Host& host);
  void cut_off(Host& host, const char* why);
  void join(Host& host);
  void report(Host& host, Report report);
  void send_outbox(Host& host);
  void obey(Host& host, const Order& order);
  void spawn(Host& host, const StartOrder& order);
  void kill_workers(Host& host, Ms at_most);
  void workers_gone(Host& host);
  void fail_worker(Host& host);
  void succeed(Host& host);
  void leave(Host& host);
  void end_agent(Host& host, const std::string& how);
  void freeze(Host& host);
  void thaw(Host& host);
  void lose_process(Host& host, bool is_power_off);
  AgentId name(const Host& host) const;

  // simulated_store.cpp
  void open_store(Host& host, std::uint64_t epoch, bool is_successor);
  void close_store(Host& host);
  void read(Host& host, const Report& report);
  void apply(Host& host, const Event& event);
  void hello(const ConnectionPtr& connection, std::uint64_t token, bool is_again);
  void flush(Host& host, const AgentId& agent);
  void read_orders(Host& from, Host& to, const AgentId& agent, std::uint64_t instance, std::uint64_t last);
  void arm(Host& host);
  void look_for_a_better_host(Host& host);
  Store* store_of(const ConnectionPtr& connection);

  Rules rules_;
  std::mt19937_64 random_;
  MembershipOptions options_;
  int endpoints_ = 1;
  Ms lease_{15'000};
  Ms kill_{2'000};
  Ms grace_{5'000};  ///< That workers get to end by themselves.
  TimePoint now_{};
  std::uint64_t serial_ = 0;
  struct Later {
    TimePoint when;
    std::uint64_t serial;
    std::shared_ptr<std::function<void()>> what;
    bool operator>(const Later& other) const { return std::pair(when, serial) > std::pair(other.when, other.serial); }
  };
  std::priority_queue<Later, std::vector<Later>, std::greater<>> later_;
  std::vector<Host> hosts_;
  std::set<std::pair<int, int>> cut_;
  std::uint64_t names_ = 0;
  bool is_calm_ = false;
  bool has_begun_ = false;  ///< A world of the job has begun that knows of itself.
  int failures_ = 0;
  std::vector<std::weak_ptr<Connection>> connections_;  ///< What waits in them refers to them.
  Tally tally_;
};

}  // namespace tensorplay::rendezvous::simulation
