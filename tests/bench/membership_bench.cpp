// What many nodes cost the leader: its core alone, and with the messages encoded and decoded as they travel.
//   membership_bench [NODES ...]
#include "rendezvous/membership.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using namespace tensorplay::rendezvous;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One leader with `nodes` agents of 8 workers, which answer as they should.
class World {
 public:
  World(int nodes, bool encodes, bool is_successor = false)
      : nodes_(nodes), encodes_(encodes), core_(options(nodes, is_successor)) {}

  void join_all() {
    for (int i = 0; i < nodes_; ++i) report(joined_of(i));
  }
  void fail_one() {
    WorkerFailure failure;
    failure.rank = 3;
    failure.signal = 11;
    failure.last_lines.assign(20, "a line of stderr as long as they tend to be in practice, or so");
    report(Failed{name(1), core_.round(), failure});
    for (int i = 0; i < nodes_; ++i) {
      std::vector<WorkerFailure> victims(8);
      for (int k = 0; k < 8; ++k) {
        victims[k].rank = 8 * i + k;
        victims[k].signal = 15;
        victims[k].stopped_by_us = victims[k].rank != 3;
      }
      report(Stopped{name(i), core_.round(), victims, false});
    }
  }
  void lose_one() {
    const int round = core_.round();
    apply(Lost{name(2), "no answer for 15 s", {}});
    for (int i = 0; i < nodes_; ++i) {
      if (i != 2) report(Stopped{name(i), round, {}, false});
    }
    apply(Tick{});
  }
  /// Clean leaves of every hundredth node, all in one stop.
  void leave_some() {
    const int round = core_.round();
    for (int i = 0; i < nodes_; ++i) {
      if (leaves(i)) report(Leaving{name(i), "SIGTERM", true});
    }
    for (int i = 0; i < nodes_; ++i) {
      if (i != 2 && !leaves(i)) report(Stopped{name(i), round, {}, false});
    }
    apply(Tick{});
  }
  void succeed_all() {
    const int round = core_.round();
    for (int i = 0; i < nodes_; ++i) {
      if (i != 2 && !leaves(i)) report(Succeeded{name(i), round});
    }
  }
  /// Another host has taken over: all but one of the last world join, settle, start and confirm.
  void succeed_a_leader() {
    for (int i = 1; i < nodes_; ++i) {
      auto joined = joined_of(i);
      joined.past = {{1, 7, 2, i, nodes_, 2, 0, true}};
      joined.seen_epoch = 1;
      report(joined);
    }
    while (core_.round() < 0) {
      now_ = *core_.next_tick();
      apply(Tick{});
    }
    for (int i = 1; i < nodes_; ++i) report(Started{name(i), core_.round()});
  }
  int rounds() const { return core_.round() + 1; }
  bool is_finished() const { return core_.phase() == Membership::Phase::kFinished; }

 private:
  static bool leaves(int i) { return i % 100 == 50; }
  Joined joined_of(int i) const {
    Joined joined;
    joined.agent = name(i);
    joined.host = "node" + std::to_string(nodes_ - i);
    joined.addresses = {"10.0.0.1"};
    joined.nproc = 8;
    joined.port = 29500;
    return joined;
  }
  static MembershipOptions options(int nodes, bool is_successor) {
    MembershipOptions options;
    options.can_be_succeeded = options.is_successor = is_successor;
    options.min_nodes = nodes / 2;
    options.max_nodes = nodes;
    options.restarts.max_restarts = 3;
    return options;
  }
  static AgentId name(int i) { return "host_4711_" + std::to_string(i); }

  void report(const Report& report) {
    if (!encodes_) return std::visit([this](const auto& r) { apply(r); }, report);
    std::visit([this](auto&& r) { apply(std::move(r)); }, decode_report(encode(report)));
  }
  void apply(const Will&) {}  // the leader's business; none is sent here
  void apply(const Event& event) {
    now_ += std::chrono::microseconds(1);
    const auto effects = core_.apply(event, now_);
    if (!encodes_) return;
    for (const auto& [agents, order] : effects.orders) bytes_ += encode(order).size() * agents.size();
  }

  int nodes_;
  bool encodes_;
  Membership core_;
  TimePoint now_{};
  std::size_t bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {100, 1'000, 10'000};
  std::printf("leader time in ms           join  failure   loss  leaves    end  succession\n");
  for (const int nodes : sizes) {
    for (const bool encodes : {false, true}) {
      World world(nodes, encodes);
      const double join = seconds_of([&] { world.join_all(); });
      const double fail = seconds_of([&] { world.fail_one(); });
      const double lose = seconds_of([&] { world.lose_one(); });
      const double leave = seconds_of([&] { world.leave_some(); });
      const double end = seconds_of([&] { world.succeed_all(); });
      World successor(nodes, encodes, true);
      const double succession = seconds_of([&] { successor.succeed_a_leader(); });
      std::printf("%6d nodes%s  %7.1f  %7.1f  %5.1f  %6.1f  %5.1f  %10.1f%s\n", nodes,
                  encodes ? ", messages" : ", core    ", join * 1e3, fail * 1e3, lose * 1e3, leave * 1e3, end * 1e3,
                  succession * 1e3, world.is_finished() && world.rounds() == 4 ? "" : "  (did not end)");
    }
  }
}
