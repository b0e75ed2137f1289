#include "runtime/store/spin_budget.hpp"

#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using tensorplay::store::SpinBudget;

namespace {

const SpinBudget::TimePoint kStart{1h};

}  // namespace

TEST_CASE("a request after a pause is not looked for, one right after an answer is") {
  SpinBudget budget;
  REQUIRE(budget.for_request_at(kStart) == 0us);
  budget.answered(kStart + 30us, 30us);
  REQUIRE(budget.for_request_at(kStart + 40us) > 0us);
  REQUIRE(budget.for_request_at(kStart + 10ms) == 0us);
}

TEST_CASE("looking in vain stops soon, is tried again now and then, and resumes when it pays") {
  SpinBudget budget;
  auto now = kStart;
  int looked = 0;
  for (int i = 0; i < 1000; ++i) {
    looked += budget.for_request_at(now) > 0us ? 1 : 0;
    now += 300us;
    budget.answered(now, 300us);
  }
  REQUIRE(looked > 5);
  REQUIRE(looked < 30);
  budget.answered(now, 10us);
  REQUIRE(budget.for_request_at(now) > 0us);
}
