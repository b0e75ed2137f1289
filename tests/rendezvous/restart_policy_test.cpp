#include "rendezvous/restart_policy.hpp"

#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using tensorplay::rendezvous::RestartAnswer;
using tensorplay::rendezvous::RestartPolicy;
using tensorplay::rendezvous::TimePoint;

TEST_CASE("a budget without a window never comes back") {
  RestartPolicy policy({.max_restarts = 2});
  REQUIRE(policy.ask(TimePoint(0s), 1s) == RestartAnswer::kRestart);
  REQUIRE(policy.ask(TimePoint(1000h), 1000h) == RestartAnswer::kRestart);
  REQUIRE(policy.ask(TimePoint(10000h), 9000h) == RestartAnswer::kNoneLeft);
  REQUIRE(policy.spent() == 2);
}

TEST_CASE("what was spent longer ago than the window may be spent again, and still counts as a restart") {
  RestartPolicy policy({.max_restarts = 2, .window = 10s});
  REQUIRE(policy.ask(TimePoint(0s), 1s) == RestartAnswer::kRestart);
  REQUIRE(policy.ask(TimePoint(9s), 9s) == RestartAnswer::kRestart);
  REQUIRE(policy.ask(TimePoint(9900ms), 900ms) == RestartAnswer::kNoneLeft);
  REQUIRE(policy.left(TimePoint(10s)) == 1);
  REQUIRE(policy.ask(TimePoint(10s), 1s) == RestartAnswer::kRestart);
  REQUIRE(policy.ask(TimePoint(10s), 1s) == RestartAnswer::kNoneLeft);
  REQUIRE(policy.spent() == 3);
}

TEST_CASE("a budget of none or less allows nothing") {
  REQUIRE(RestartPolicy({.max_restarts = 0}).ask(TimePoint(0s), 1h) == RestartAnswer::kNoneLeft);
  REQUIRE(RestartPolicy({.max_restarts = -3, .window = 1s}).ask(TimePoint(0s), 1h) == RestartAnswer::kNoneLeft);
}

TEST_CASE(
    "restarts in a row that make no progress end before the budget does, and one that does starts the count anew") {
  RestartPolicy policy({.max_restarts = 100, .no_progress_limit = 2, .progress_after = 60s});
  TimePoint now(0s);
  REQUIRE(policy.ask(now += 1s, 1s) == RestartAnswer::kRestart);  // the first attempt is no restart
  REQUIRE(policy.ask(now += 1s, 1s) == RestartAnswer::kRestart);
  REQUIRE(policy.fruitless() == 1);
  REQUIRE(policy.ask(now += 60s, 60s) == RestartAnswer::kRestart);
  REQUIRE(policy.fruitless() == 0);
  REQUIRE(policy.ask(now += 1s, 1s) == RestartAnswer::kRestart);
  REQUIRE(policy.ask(now += 59s, 59s) == RestartAnswer::kNoProgress);
  REQUIRE(policy.spent() == 4);
}

TEST_CASE("a new leader goes on with what was spent under the old one, and with no less than it knows itself") {
  RestartPolicy policy({.max_restarts = 3, .no_progress_limit = 3});
  policy.adopt(2, 2, 1, TimePoint(0s));
  policy.adopt(1, 1, 0, TimePoint(0s));
  REQUIRE(policy.spent() == 2);
  REQUIRE(policy.left(TimePoint(0s)) == 1);
  REQUIRE(policy.fruitless() == 1);
  REQUIRE(policy.ask(TimePoint(1s), 1s) == RestartAnswer::kRestart);
  REQUIRE(policy.ask(TimePoint(2s), 1s) == RestartAnswer::kNoProgress);
}

TEST_CASE("what came back under the old leader is not taken away by the new one") {
  RestartPolicy policy({.max_restarts = 3, .window = 1h});
  policy.adopt(50, 1, 0, TimePoint(0s));
  REQUIRE(policy.spent() == 50);
  REQUIRE(policy.left(TimePoint(0s)) == 2);
  REQUIRE(policy.left(TimePoint(1h)) == 3);
}
