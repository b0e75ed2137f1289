#include "runtime/group/fingerprint.hpp"
#include "runtime/group/objects.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <catch2/catch.hpp>

using namespace tensorplay::distributed;

TEST_CASE("bytes that are no object are an error, however deep they are nested") {
  const auto unpack = [](const std::vector<std::uint8_t>& bytes) {
    return unpack_object(bytes.data(), bytes.size(), "test");
  };
  REQUIRE(unpack({0x93, 1, 2, 3}) == Object({1, 2, 3}));
  REQUIRE_THROWS_AS(unpack({}), DistBackendError);
  REQUIRE_THROWS_AS(unpack({0xc1}), DistBackendError);
  REQUIRE_THROWS_AS(unpack({1, 2}), DistBackendError);
  REQUIRE_THROWS_AS(unpack({0xdd, 0xff, 0xff, 0xff, 0xff, 1}), DistBackendError);  // 4 billion elements, one there.
  REQUIRE_THROWS_WITH(unpack(std::vector<std::uint8_t>(1'000'000, 0x91)), Catch::Contains("too deep"));
}

TEST_CASE("calls that differ are described by who calls what, equal ones not at all") {
  REQUIRE(describe_difference({"a", "a", "a"}).empty());
  REQUIRE(describe_difference({"a", "b", "a", "c"}) == "rank 0 and rank 2 call a; rank 1 calls b; rank 3 calls c");
}

TEST_CASE("the first pair that disagrees is described, and what a rank does not know is no difference") {
  constexpr auto kUntold = Fingerprint::kUntold;
  REQUIRE(describe_pair_difference({{1, 2}, {3, 4}}, {{1, 3}, {2, 4}}).empty());
  REQUIRE(describe_pair_difference({{kUntold, 2}, {3, 4}}, {{9, 3}, {kUntold, 4}}).empty());
  REQUIRE(describe_pair_difference({{1, 2}, {3, 4}}, {{1, 3}, {5, 4}}) ==
          "rank 0 sends 2 elements to rank 1, which expects 5");
}
