#include "tensorplay/distributed/deadline.hpp"

#include "tensorplay/distributed/errors.hpp"
#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using tensorplay::distributed::Deadline;
using tensorplay::distributed::InvalidArgument;

TEST_CASE("a zero timeout has already passed and a negative one is refused") {
  REQUIRE(Deadline::after(0ms).has_passed());
  REQUIRE_THROWS_AS(Deadline::after(-1ms), InvalidArgument);
}

TEST_CASE("poll never wakes before the deadline") {
  const auto now = Deadline::Clock::now();
  REQUIRE(Deadline::at(now + 1500us).poll_timeout_ms(now) == 2);
  REQUIRE(Deadline::at(now - 1ms).poll_timeout_ms(now) == 0);
  REQUIRE(Deadline::never().poll_timeout_ms(now) == -1);
  REQUIRE(Deadline::at(now + 24h * 100).poll_timeout_ms(now) > 0);
}

TEST_CASE("a timeout beyond the clock's range never passes instead of wrapping") {
  REQUIRE(Deadline::after(std::chrono::milliseconds::max()).is_never());
}
