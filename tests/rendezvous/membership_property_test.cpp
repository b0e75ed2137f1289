// Random worlds: whatever happens in whatever order, the core keeps its promises. Seeds are fixed; TP_SEED=n runs one
// more.
#include "rendezvous/membership.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

using namespace tensorplay::rendezvous;
using namespace std::chrono_literals;

namespace {

/// An agent as the leader sees it: what it runs, and orders that are still on their way to it.
struct Agent {
  int running_round = -1;  ///< Its workers live.
  std::vector<Order> mail;
  bool is_leaving = false;
  TimePoint workers_gone_at{};  ///< For one that was lost: when its workers are dead at the latest.
};

class RandomWorld {
 public:
  explicit RandomWorld(std::uint64_t seed) : random_(seed) {
    options_.min_nodes = pick(1, 4);
    options_.max_nodes = options_.min_nodes + pick(0, 3);
    options_.restarts.max_restarts = pick(0, 2) == 0 ? 1000 : pick(0, 3);
    if (pick(0, 3) == 0) options_.restarts.window = std::chrono::seconds(pick(1, 100));
    options_.last_call = std::chrono::seconds(pick(0, 5));
    options_.replacement_wait = std::chrono::seconds(pick(0, 5));
    options_.join_timeout = std::chrono::seconds(pick(5, 60));
    core_.emplace(options_);
  }

  void run() {
    for (int step = 0; step < 1500 && core_->phase() != Membership::Phase::kFinished; ++step) {
      now_ += std::chrono::milliseconds(pick(0, 2000));
      play();
      check_lost();
    }
    end();
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void apply(const Event& event) {
    const auto effects = core_->apply(event, now_);
    int starts = 0;
    std::set<int> first_ranks;
    std::set<AgentId> started;
    int expected_first = 0;
    for (const auto& [agents, order] : effects.orders) {
      for (const auto& agent : agents) {
        if (const auto* start = std::get_if<StartOrder>(&order)) {
          ++starts;
          REQUIRE(agents.size() == 1);
          REQUIRE(started.insert(agent).second);
          REQUIRE(start->first_rank == expected_first);
          REQUIRE(start->group_rank == starts - 1);
          expected_first += nproc_.at(agent);
          REQUIRE(start->round == last_round_ + 1);
        }
        const auto found = alive_.find(agent);
        if (found != alive_.end()) found->second.mail.push_back(order);
        if (std::holds_alternative<FinishOrder>(order)) ++finishes_;
      }
    }
    if (starts > 0) {
      // The old world is gone before the new one begins, on the hosts that were lost too.
      for (const auto& [name, agent] : alive_) REQUIRE(agent.running_round == -1);
      for (const auto& [name, agent] : lost_) REQUIRE((agent.running_round == -1 || agent.workers_gone_at <= now_));
      ++last_round_;
      REQUIRE(core_->round() == last_round_);
      REQUIRE(starts >= options_.min_nodes);
      REQUIRE(starts <= options_.max_nodes);
      for (const auto& [agents, order] : effects.orders) {
        if (const auto* start = std::get_if<StartOrder>(&order)) {
          REQUIRE(start->world_size == expected_first);
          REQUIRE(start->group_world_size == starts);
        }
      }
    }
    if (!options_.restarts.window) REQUIRE(core_->restart_count() <= options_.restarts.max_restarts);
    REQUIRE(core_->restart_count() <= failures_sent_);
  }

  void play() {
    const int dice = pick(0, 99);
    if (dice < 12 || alive_.empty()) return join();
    auto where = alive_.begin();
    std::advance(where, pick(0, static_cast<int>(alive_.size()) - 1));
    const auto name = where->first;
    auto& agent = where->second;
    if (dice < 55 && !agent.mail.empty()) return obey(name, agent);
    if (dice < 60) return lose(name, agent);
    if (dice < 64) return leave(name, agent);
    if (dice < 72) return fail(name, agent);
    if (dice < 76) return ++failures_sent_, apply(Failed{name, pick(-1, 3), {}});  // perhaps of an old round
    if (dice < 78) return apply(Stopped{name, last_round_ - 1, {}, false});
    if (dice < 80) return apply(Succeeded{"nobody", last_round_});
    if (dice < 82) return apply(joined(name));  // it lost its connection and says it again
    if (dice < 84 && agent.running_round >= 0) return succeed(name, agent);
    const auto tick = core_->next_tick();
    if (tick && pick(0, 1) == 0) now_ = std::max(now_, *tick);
    apply(Tick{});
  }

  Joined joined(const AgentId& name) {
    Joined j;
    j.agent = name;
    j.host = "n" + std::to_string(pick(1, 12));
    j.addresses = {j.host};
    j.nproc = nproc_.at(name);
    if (pick(0, 3) == 0) j.rank_hint = pick(0, 3);
    return j;
  }

  void join() {
    if (alive_.size() > 9) return;
    const auto name = "agent" + std::to_string(names_++);
    nproc_[name] = pick(1, 4);
    alive_[name];
    apply(joined(name));
  }

  void obey(const AgentId& name, Agent& agent) {
    const auto order = agent.mail.front();
    agent.mail.erase(agent.mail.begin());
    if (const auto* start = std::get_if<StartOrder>(&order)) {
      agent.running_round = start->round;
      succeeded_.erase(name);
    } else if (std::get_if<StopOrder>(&order) != nullptr) {
      if (agent.running_round < 0 && succeeded_.count(name) == 0) return;  // it has said so already
      const int round = std::get<StopOrder>(order).round;
      agent.running_round = -1;
      succeeded_.erase(name);
      apply(Stopped{name, round, {}, false});
    }
  }

  void lose(const AgentId& name, Agent& agent) {
    auto lost = agent;
    lost.workers_gone_at = now_ + std::chrono::seconds(pick(0, 10));
    lost_[name] = lost;
    alive_.erase(name);
    apply(Lost{name, "no answer", lost.workers_gone_at});
  }

  void leave(const AgentId& name, Agent& agent) {
    if (agent.running_round >= 0 && !agent.is_leaving) {
      agent.is_leaving = true;
      apply(Leaving{name, "SIGTERM", false});
      return;
    }
    alive_.erase(name);
    apply(Leaving{name, "SIGTERM", true});
  }

  void fail(const AgentId& name, Agent& agent) {
    if (agent.running_round < 0 || agent.is_leaving) return;
    WorkerFailure failure;
    failure.exit_code = pick(1, 3);
    if (pick(0, 2) == 0) failure.message = "Connection closed by peer";
    failure.host = name;
    ++failures_sent_;
    const int round = agent.running_round;
    apply(Failed{name, round, failure});
    agent.running_round = -1;
    apply(Stopped{name, round, {failure}, false});
  }

  void succeed(const AgentId& name, Agent& agent) {
    if (agent.is_leaving) return;
    const int round = agent.running_round;
    agent.running_round = -1;
    succeeded_.insert(name);
    apply(Succeeded{name, round});
  }

  void check_lost() {
    for (auto& [name, agent] : lost_) {
      if (agent.workers_gone_at <= now_) agent.running_round = -1;
    }
  }

  /// From here on every agent does as it is told, and time passes: an end is reached.
  void end() {
    for (int step = 0; step < 400 && core_->phase() != Membership::Phase::kFinished; ++step) {
      now_ += 1s;
      check_lost();
      for (auto& [name, agent] : std::map(alive_)) {
        auto& real = alive_.at(name);
        if (real.is_leaving) {
          alive_.erase(name);
          apply(Leaving{name, "SIGTERM", true});
          continue;
        }
        while (!real.mail.empty()) obey(name, real);
        if (real.running_round >= 0 && core_->phase() == Membership::Phase::kRunning) succeed(name, real);
      }
      apply(Tick{});
    }
    REQUIRE(core_->phase() == Membership::Phase::kFinished);
    REQUIRE_FALSE(core_->next_tick());
    // A late one is told the end as well.
    const auto before = finishes_;
    nproc_["late"] = 1;
    alive_["late"];
    apply(joined("late"));
    REQUIRE(finishes_ == before + 1);
  }

  std::mt19937_64 random_;
  MembershipOptions options_;
  std::optional<Membership> core_;
  TimePoint now_{};
  std::map<AgentId, Agent> alive_;
  std::map<AgentId, Agent> lost_;
  std::set<AgentId> succeeded_;
  std::map<AgentId, int> nproc_;
  int names_ = 0;
  int last_round_ = -1;
  int finishes_ = 0;
  int failures_sent_ = 0;
};

}  // namespace

TEST_CASE("whatever happens there is one world, with contiguous ranks, within its budget, and an end") {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    INFO("seed " << seed);
    RandomWorld(seed).run();
  }
  if (const char* extra = std::getenv("TP_SEED")) {
    INFO("seed " << extra);
    RandomWorld(std::strtoull(extra, nullptr, 10)).run();
  }
}
