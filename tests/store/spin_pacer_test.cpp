#include "runtime/store/spin_pacer.hpp"

#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using tensorplay::store::SpinPacer;

namespace {

/// How many of `count` requests that come `gap` apart are followed by looking.
int looks(SpinPacer& pacer, int count, std::chrono::microseconds gap) {
  static SpinPacer::TimePoint now{std::chrono::hours(1)};
  int found = 0;
  for (int i = 0; i < count; ++i) {
    now += gap;
    pacer.on_traffic(now);
    if (pacer.should_spin(now + 1us)) ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("requests in a row are looked for, from the second one on") {
  SpinPacer pacer(true);
  looks(pacer, 1, 1s);
  REQUIRE(looks(pacer, 1000, 20us) == 1000);
}

TEST_CASE("requests now and then are never looked for") {
  SpinPacer pacer(true);
  REQUIRE(looks(pacer, 1000, 10ms) == 0);
}

TEST_CASE("looking ends some tens of microseconds after the last request") {
  SpinPacer pacer(true);
  SpinPacer::TimePoint now{1s};
  pacer.on_traffic(now);
  pacer.on_traffic(now += 10us);
  REQUIRE(pacer.should_spin(now + 59us));
  REQUIRE_FALSE(pacer.should_spin(now + 60us));
}

TEST_CASE("a row just too slow to be caught is tried a few times and then hardly ever") {
  SpinPacer pacer(true);
  REQUIRE(looks(pacer, 1000, 90us) < 30);
  // When it becomes faster it is found again.
  looks(pacer, 200, 20us);
  REQUIRE(looks(pacer, 100, 20us) == 100);
}

TEST_CASE("with one CPU for both ends nothing is looked for") {
  SpinPacer pacer(false);
  REQUIRE(looks(pacer, 1000, 20us) == 0);
}
