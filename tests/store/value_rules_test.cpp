#include "runtime/store/value_rules.hpp"

#include "tensorplay/distributed/errors.hpp"
#include "tests/support/catch.hpp"

#include <limits>

using namespace tensorplay::store;

TEST_CASE("a counter is read as C's strtoll reads it, and what it cannot read is refused") {
  REQUIRE(parse_counter("5") == 5);
  REQUIRE(parse_counter(" \n-7") == -7);
  REQUIRE(parse_counter("+8") == 8);
  REQUIRE(parse_counter("5abc") == 5);
  REQUIRE(parse_counter("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  for (const char* bad : {"", " ", "abc", "-", "+", "+-5", "9223372036854775808"}) {
    CAPTURE(bad);
    REQUIRE_FALSE(parse_counter(bad).has_value());
  }
}

TEST_CASE("a sum beyond 64 bits is an error, never a wrapped counter") {
  const std::string most = "9223372036854775807";
  REQUIRE(add_to_counter(&most, -1, "n") == std::numeric_limits<std::int64_t>::max() - 1);
  REQUIRE_THROWS_AS(add_to_counter(&most, 1, "n"), tensorplay::distributed::DistStoreError);
  REQUIRE(add_to_counter(nullptr, 3, "n") == 3);
}

TEST_CASE("compare and set follows the table of four cases") {
  const std::string current = "old";
  const auto absent_unexpected = compare_set_outcome(nullptr, "old", "new");
  REQUIRE((!absent_unexpected.is_stored && absent_unexpected.answer == "old"));
  const auto absent_expected = compare_set_outcome(nullptr, "", "new");
  REQUIRE((absent_expected.is_stored && absent_expected.answer == "new"));
  const auto match = compare_set_outcome(&current, "old", "new");
  REQUIRE((match.is_stored && match.answer == "new"));
  const auto mismatch = compare_set_outcome(&current, "other", "new");
  REQUIRE((!mismatch.is_stored && mismatch.answer == "old"));
}

TEST_CASE("an error names a few keys and counts the rest") {
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(std::string("k").append(std::to_string(i)));
  REQUIRE(wait_timeout_text(300, keys) == "wait timeout after 300ms, keys: k0, k1, k2, k3, k4, k5, k6, k7 and 92 more");
}
