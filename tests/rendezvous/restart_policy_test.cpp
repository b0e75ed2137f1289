#include "rendezvous/restart_policy.hpp"

#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using tensorplay::rendezvous::RestartPolicy;
using tensorplay::rendezvous::TimePoint;

TEST_CASE("a budget without a window never comes back") {
  RestartPolicy policy(2);
  REQUIRE(policy.try_spend(TimePoint(0s)));
  REQUIRE(policy.try_spend(TimePoint(1000h)));
  REQUIRE_FALSE(policy.try_spend(TimePoint(10000h)));
  REQUIRE(policy.spent() == 2);
}

TEST_CASE("what was spent longer ago than the window may be spent again, and still counts as a restart") {
  RestartPolicy policy(2, 10s);
  REQUIRE(policy.try_spend(TimePoint(0s)));
  REQUIRE(policy.try_spend(TimePoint(9s)));
  REQUIRE_FALSE(policy.try_spend(TimePoint(9900ms)));
  REQUIRE(policy.left(TimePoint(10s)) == 1);
  REQUIRE(policy.try_spend(TimePoint(10s)));
  REQUIRE_FALSE(policy.try_spend(TimePoint(10s)));
  REQUIRE(policy.spent() == 3);
}

TEST_CASE("a budget of none or less allows nothing") {
  REQUIRE_FALSE(RestartPolicy(0).try_spend(TimePoint(0s)));
  REQUIRE_FALSE(RestartPolicy(-3, 1s).try_spend(TimePoint(0s)));
}
