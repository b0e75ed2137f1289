// Whole hosts under chaos, with fixed seeds. With TP_SEED=n one more runs, told line by line with TP_LOUD=1;
// scripts/simulate.sh draws fresh ones.
#include "tests/rendezvous/simulation/simulation.hpp"

#include "tests/support/catch.hpp"

#include <cstdlib>

using namespace tensorplay::rendezvous::simulation;

namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("whatever befalls the hosts there is one world, no rank lives twice, and an end is reached", "[simulation]") {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) tally.add(Simulation({.seed = seed}).run());
  CHECK(tally.steps >= 100'000);
  // The chaos reaches what it is for.
  CHECK(tally.rounds >= 500);
  CHECK(tally.rounds_of_successors >= 100);
  CHECK(tally.take_overs >= 100);
  CHECK(tally.step_downs >= 5);
  CHECK(tally.stops_for_lack_of_quorum >= 20);
  CHECK(tally.succeeded >= 100);
}

TEST_CASE("fresh seeds", "[.fresh]") {
  const auto first = number_from("TP_SEED", 1);
  const auto count = number_from("TP_SEEDS", 1);
  const auto steps = static_cast<int>(number_from("TP_STEPS", 3'000));
  Tally tally;
  for (auto seed = first; seed < first + count; ++seed) {
    tally.add(Simulation({.seed = seed, .steps = steps, .is_loud = number_from("TP_LOUD", 0) == 1}).run());
  }
  WARN("steps " << tally.steps << ", rounds " << tally.rounds << " (under successors " << tally.rounds_of_successors
                << "), take-overs " << tally.take_overs << ", step-downs " << tally.step_downs
                << ", stops for lack of quorum " << tally.stops_for_lack_of_quorum << ", agents that succeeded "
                << tally.succeeded << ", gave up " << tally.gave_up << ", failed " << tally.failed);
}
