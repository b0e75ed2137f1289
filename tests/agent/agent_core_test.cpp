#include "agent/agent_core.hpp"

#include "tests/support/catch.hpp"

#include <csignal>

using namespace tensorplay::agent;
namespace rdzv = tensorplay::rendezvous;

namespace {

rdzv::Order start(int round) {
  rdzv::StartOrder order;
  order.round = round;
  return order;
}

rdzv::Order finish(int exit_code) {
  rdzv::FinishOrder order;
  order.exit_code = exit_code;
  return order;
}

WorkerEnded failed(int rank) {
  WorkerEnded ended;
  ended.ended_well = false;
  ended.failure.rank = rank;
  ended.failure.exit_code = 1;
  return ended;
}

/// What an action is, in a word or two.
std::string name_of(const AgentAction& action) {
  struct Namer {
    std::string operator()(const SendReport& a) const {
      if (std::holds_alternative<rdzv::Stopped>(a.report)) {
        return "stopped " + std::to_string(std::get<rdzv::Stopped>(a.report).round);
      }
      if (std::holds_alternative<rdzv::Failed>(a.report)) return "failed";
      if (std::holds_alternative<rdzv::Started>(a.report)) return "started";
      if (std::holds_alternative<rdzv::Succeeded>(a.report)) return "succeeded";
      if (const auto* leaving = std::get_if<rdzv::Leaving>(&a.report)) {
        return leaving->workers_gone ? "left" : "leaving";
      }
      return "joined";
    }
    std::string operator()(const SpawnWorkers& a) const { return "spawn " + std::to_string(a.order.round); }
    std::string operator()(const StopWorkers& a) const {
      return (a.already_delivered ? "await " : "stop ") + std::to_string(a.signal);
    }
    std::string operator()(const KillWorkers&) const { return "kill"; }
    std::string operator()(const JoinAnew&) const { return "join anew"; }
    std::string operator()(const EndAgent& a) const {
      if (a.stop_signal != 0) return "end by signal " + std::to_string(a.stop_signal);
      return a.order ? "end " + std::to_string(a.order->exit_code) : "end without a word";
    }
  };
  return std::visit(Namer{}, action);
}

struct Driver {
  AgentCore core{"a"};
  std::vector<std::string> operator()(const AgentEvent& event) {
    std::vector<std::string> names;
    for (const auto& action : core.apply(event)) names.push_back(name_of(action));
    return names;
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a run that goes well is a start, a success and a finish") {
  Driver on;
  REQUIRE(on(start(0)) == Names{"spawn 0"});
  REQUIRE(on(WorkerEnded{}).empty());
  REQUIRE(on(WorkersGone{}) == Names{"succeeded"});
  REQUIRE(on(finish(0)) == Names{"end 0"});
  REQUIRE(on.core.state() == AgentState::kDone);
}

TEST_CASE("a stop at once kills, also workers that are being stopped already") {
  Driver on;
  on(start(0));
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{0, "n3 joined"})) == Names{"stop 15"});
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{0, "n3 was lost", true})) == Names{"kill"});
  REQUIRE(on(WorkersGone{}) == Names{"stopped 0"});
  on(start(1));
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{0, "late", true})).empty());
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{1, "n3 was lost", true})) == Names{"kill"});
}

TEST_CASE("an agent remembers its worlds back to the last one that was confirmed") {
  Driver on;
  const auto start_of = [](int round) {
    rdzv::StartOrder order;
    order.round = round;
    order.epoch = 2;
    order.wants_confirmation = true;
    return rdzv::Order(order);
  };
  REQUIRE(on(start_of(4)) == Names{"started", "spawn 4"});
  on(rdzv::Order(rdzv::StopOrder{4, "n3 joined"}));
  on(WorkersGone{});
  on(start_of(5));
  REQUIRE(on.core.past_worlds().size() == 2);
  REQUIRE_FALSE(on.core.past_worlds().front().is_confirmed);
  on(rdzv::Order(rdzv::ConfirmedOrder{4}));  // late
  REQUIRE(on.core.past_worlds().size() == 2);
  on(rdzv::Order(rdzv::ConfirmedOrder{5}));
  REQUIRE(on.core.past_worlds().size() == 1);
  REQUIRE(on.core.past_worlds().front().round == 5);
  REQUIRE(on.core.past_worlds().front().epoch == 2);
  REQUIRE(on.core.past_worlds().front().is_confirmed);
}

TEST_CASE("the first failure is told at once, and the rest are stopped and told when all are gone") {
  Driver on;
  on(start(0));
  REQUIRE(on(failed(1)) == Names{"failed", "stop 15"});
  REQUIRE(on(failed(0)).empty());
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{0, "rank 1"})).empty());
  REQUIRE(on(WorkersGone{{failed(1).failure, failed(0).failure}, false}) == Names{"stopped 0"});
  REQUIRE(on(start(1)) == Names{"spawn 1"});
}

TEST_CASE("a worker that could not be started is a failure like any other to the agent") {
  Driver on;
  on(start(0));
  REQUIRE(on(failed(0)) == Names{"failed", "stop 15"});
  REQUIRE(on(WorkersGone{}) == Names{"stopped 0"});
}

TEST_CASE("a stop for another node's sake stops the workers, or is answered at once when they have ended well") {
  Driver on;
  on(start(0));
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{0, "b was lost"})) == Names{"stop 15"});
  REQUIRE(on(WorkersGone{}) == Names{"stopped 0"});
  on(start(1));
  on(WorkersGone{});
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{1, "b failed"})) == Names{"stopped 1"});
  REQUIRE(on.core.state() == AgentState::kJoining);
}

TEST_CASE("an order to stop an old round is out of date") {
  Driver on;
  on(start(0));
  on(failed(0));
  on(WorkersGone{});
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{0, "late"})).empty());
  on(start(1));
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{0, "later"})).empty());
}

TEST_CASE("a stop request passes its own signal on and ends by it, even when all workers end well") {
  Driver on;
  on(start(0));
  REQUIRE(on(StopRequested{SIGHUP, false, false}) == Names{"leaving", "stop 1"});
  REQUIRE(on(WorkerEnded{}).empty());
  REQUIRE(on(WorkersGone{}) == Names{"left", "end by signal 1"});
}

TEST_CASE("a stop request before the first worker ends at once") {
  Driver on;
  REQUIRE(on(StopRequested{SIGTERM, false, false}) == Names{"left", "end by signal 15"});
  REQUIRE(on(start(0)).empty());
}

TEST_CASE("a stop request after the workers ended well and before the leader's word still ends by the signal") {
  Driver on;
  on(start(0));
  on(WorkersGone{});
  REQUIRE(on(StopRequested{SIGINT, false, false}) == Names{"left", "end by signal 2"});
}

TEST_CASE("a stop request while a failure is being stopped wins over the restart") {
  Driver on;
  on(start(0));
  on(failed(0));
  REQUIRE(on(StopRequested{SIGTERM, false, false}) == Names{"leaving", "stop 15"});
  REQUIRE(on(WorkersGone{}) == Names{"left", "end by signal 15"});
}

TEST_CASE("a signal that the workers have had already is not sent to them again") {
  Driver on;
  on(start(0));
  REQUIRE(on(StopRequested{SIGTERM, false, true}) == Names{"leaving", "await 15"});
}

TEST_CASE("force kills, and the first signal is the one tprun ends by") {
  Driver on;
  on(start(0));
  on(StopRequested{SIGINT, false, false});
  REQUIRE(on(StopRequested{SIGINT, true, false}) == Names{"kill"});
  REQUIRE(on(StopRequested{SIGTERM, false, false}) == Names{"stop 15"});
  REQUIRE(on(WorkersGone{}) == Names{"left", "end by signal 2"});
}

TEST_CASE("the end that comes while workers live stops them first") {
  Driver on;
  on(start(0));
  REQUIRE(on(finish(75)) == Names{"stop 15"});
  REQUIRE(on(WorkersGone{}) == Names{"end 75"});
}

TEST_CASE("without its guardian the agent kills everything and goes") {
  Driver running;
  running(start(0));
  REQUIRE(running(GuardianLost{}) == Names{"kill"});
  REQUIRE(running(WorkersGone{}) == Names{"left", "end without a word"});
  Driver idle;
  REQUIRE(idle(GuardianLost{}) == Names{"left", "end without a word"});
}

TEST_CASE("an agent that is cut off kills its workers and joins anew when none is left") {
  Driver on;
  on(start(0));
  REQUIRE(on(CutOff{"no answer for 15 s"}) == Names{"kill"});
  REQUIRE(on(start(1)).empty());
  REQUIRE(on(WorkersGone{}) == Names{"join anew"});
  on.core.rename("b");
  REQUIRE(on(start(0)) == Names{"spawn 0"});
  for (const auto& action : on.core.apply(failed(0))) {
    if (const auto* report = std::get_if<SendReport>(&action)) {
      REQUIRE(std::get<rdzv::Failed>(report->report).agent == "b");
    }
  }
}

TEST_CASE("an agent without workers that is cut off joins anew at once, also when its own have ended well") {
  Driver joining;
  REQUIRE(joining(CutOff{}) == Names{"join anew"});
  REQUIRE(joining.core.state() == AgentState::kJoining);
  Driver idle;
  idle(start(0));
  idle(WorkersGone{});
  REQUIRE(idle(CutOff{}) == Names{"join anew"});
}

TEST_CASE("an agent that was asked to stop and is cut off leaves, and one that has the last word ends by it") {
  Driver leaving;
  leaving(start(0));
  leaving(StopRequested{SIGTERM, false, false});
  REQUIRE(leaving(CutOff{}) == Names{"kill"});
  REQUIRE(leaving(WorkersGone{}) == Names{"left", "end by signal 15"});
  Driver finished;
  finished(start(0));
  finished(finish(3));
  finished(CutOff{});
  REQUIRE(finished(WorkersGone{}) == Names{"end 3"});
}

TEST_CASE("a stop at once gives no grace, not even when a graceful one is under way") {
  Driver on;
  on(start(0));
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{0, "another world may begin", true})) == Names{"kill"});
  REQUIRE(on(WorkersGone{}) == Names{"stopped 0"});
  on(start(1));
  on(failed(0));
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{1, "another world may begin", true})) == Names{"kill"});
  REQUIRE(on(rdzv::Order(rdzv::StopOrder{0, "late", true})).empty());
}
