#include "agent/stop_requests.hpp"

#include "tests/support/catch.hpp"

#include <csignal>

using namespace std::chrono_literals;
using tensorplay::agent::StopRequests;
using Action = StopRequests::Action;
using Place = StopRequests::Place;

namespace {
const StopRequests::TimePoint kStart{100s};
StopRequests with_usual_signals() {
  return StopRequests({SIGTERM, SIGINT});
}
}  // namespace

TEST_CASE("the same signal at guardian and agent is one request to stop") {
  auto requests = with_usual_signals();
  REQUIRE(requests.apply({SIGTERM, Place::kGuardian}, kStart) == Action::kStop);
  REQUIRE(requests.apply({SIGTERM, Place::kAgent}, kStart + 3ms) == Action::kNone);
}

TEST_CASE("a second request forces only when it comes a second after the first") {
  auto requests = with_usual_signals();
  REQUIRE(requests.apply({SIGINT, Place::kGuardian}, kStart) == Action::kStop);
  REQUIRE(requests.apply({SIGINT, Place::kGuardian}, kStart + 999ms) == Action::kNone);
  REQUIRE(requests.apply({SIGINT, Place::kGuardian}, kStart + 1000ms) == Action::kForce);
  REQUIRE(requests.apply({SIGTERM, Place::kAgent}, kStart + 5s) == Action::kForce);
}

TEST_CASE("a notification that reached guardian and agent is passed on once") {
  auto requests = with_usual_signals();
  REQUIRE(requests.apply({SIGUSR1, Place::kAgent}, kStart) == Action::kNotify);
  REQUIRE(requests.apply({SIGUSR1, Place::kGuardian}, kStart + 1ms) == Action::kNone);
}

TEST_CASE("two notifications at one place are two") {
  auto requests = with_usual_signals();
  REQUIRE(requests.apply({SIGUSR1, Place::kGuardian}, kStart) == Action::kNotify);
  REQUIRE(requests.apply({SIGUSR1, Place::kGuardian}, kStart + 10ms) == Action::kNotify);
  REQUIRE(requests.apply({SIGUSR2, Place::kAgent}, kStart + 11ms) == Action::kNotify);
}

TEST_CASE("a notification that the step daemon sent to everybody is not passed on") {
  auto requests = with_usual_signals();
  REQUIRE(requests.apply({SIGUSR1, Place::kGuardian, true}, kStart) == Action::kNone);
  REQUIRE(requests.apply({SIGTERM, Place::kGuardian, true}, kStart) == Action::kStop);
}

TEST_CASE("a listed SIGUSR1 stops") {
  StopRequests requests({SIGUSR1});
  REQUIRE(requests.apply({SIGUSR1, Place::kGuardian}, kStart) == Action::kStop);
}
